"""Calls whose arguments fit no parameters raise ArgumentTypeError, in the words that NumPy uses."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import weir
from conftest import HAS_CUDA
from weir import _wrong_calls

PLACES = [weir, weir.memory, weir.fft, weir.linalg, weir.random, weir.sparse, weir.testing]


def signatures(function: Any) -> list[ast.arguments]:
    """The parameters of each overload."""
    texts = [text for text, *_ in getattr(function, "__nb_signature__", ())]
    if not texts:
        texts = [f"def {function.__name__}{inspect.signature(function)}"]
    found = []
    for text in texts:
        parsed = ast.parse(re.sub(r"\\\d+", "...", text) + ": ...").body[0]
        assert isinstance(parsed, ast.FunctionDef)
        found.append(parsed.args)
    return found


class Foreign:
    """An object that no call takes."""

    def __repr__(self) -> str:
        return "<a foreign object>"


class Called:
    """A public callable: how to call it, under which name errors speak of it, and its parameters without self."""

    def __init__(self, call: Callable[..., object], shown: str, function: Any, has_self: bool) -> None:
        self.call = call
        self.shown = shown
        self.overloads = signatures(function)
        for one in self.overloads:
            if has_self:
                (one.posonlyargs or one.args).pop(0)
        self.takes_more = any(one.vararg for one in self.overloads)

    def required(self) -> list[str]:
        """Of the overload that needs the fewest."""
        return min(
            (
                [
                    *[one.arg for one in [*of.posonlyargs, *of.args]][
                        : len(of.posonlyargs) + len(of.args) - len(of.defaults)
                    ],
                    *(one.arg for one, value in zip(of.kwonlyargs, of.kw_defaults, strict=True) if value is None),
                ]
                for of in self.overloads
            ),
            key=len,
        )

    def positional(self) -> int:
        return max(len(of.posonlyargs) + len(of.args) for of in self.overloads)


def instances() -> dict[type, object]:
    """An object of each class that has methods; of Kernel where this machine can make one."""
    s = weir.Stream()
    x = weir.zeros(3)
    kernels: dict[type, object] = {}
    if HAS_CUDA:
        with contextlib.suppress(weir.MissingLibrary):
            kernels[weir.Kernel] = weir.Kernel('extern "C" __global__ void f(int n) {}', "f", "int n")
    return kernels | {
        weir.Array: x,
        weir.Device: s.device,
        weir.Event: s.record(),
        weir.Stream: s,
        weir.Report: weir.check(),
        weir.parallel: weir.parallel(1),
        weir.fft.FFT: weir.fft.FFT(x),
        weir.linalg.Matmul: weir.linalg.Matmul(weir.ones((2, 2)), weir.ones((2, 2))),
        weir.sparse.DirectSolver: weir.sparse.DirectSolver(
            (weir.ones(1), weir.zeros(1, "int32"), weir.arange(2, dtype="int32"), (1, 1)), weir.ones(1)
        ),
        weir.memory.CountingResource: weir.memory.counting(),
        weir.memory.FailingResource: weir.memory.failing(),
        weir.memory.use: weir.memory.use(weir.memory.counting()),
        weir.testing.Gate: weir.testing.Gate(),
    }


INSTANCES = instances()


def public() -> Iterator[tuple[str, Called]]:
    """Every public function, method and constructor."""
    for place in PLACES:
        for name in place.__all__ if hasattr(place, "__all__") else [n for n in vars(place) if not n.startswith("_")]:
            one: Any = getattr(place, name)
            full = f"{place.__name__}.{name}"
            if isinstance(one, type) and not issubclass(one, BaseException):
                yield full, Called(one, name, one.__init__, True)
                for method, its in vars(one).items():
                    if method.startswith("_") or isinstance(its, property):
                        continue
                    function = getattr(its, "__func__", its)
                    if isinstance(its, staticmethod) or type(its).__name__ == "nb_func":
                        yield f"{full}.{method}", Called(function, function.__qualname__, function, False)
                    elif one in INSTANCES:
                        bound = getattr(INSTANCES[one], method)
                        yield f"{full}.{method}", Called(bound, function.__qualname__, function, True)
            elif callable(one) and not isinstance(one, (type, types.ModuleType)):
                yield full, Called(one, one.__name__, one, False)


PUBLIC = dict(public())
REFUSED_BY_CLASS = "not made by programs|makes no arrays|(are|is) made by (a )?function"
MADE_ELSEWHERE = {
    "weir.Access",
    "weir.Array",
    "weir.Explanation",
    "weir.Race",
    "weir.Report",
    "weir.memory.Resource",
    "weir.memory.CountingResource",
    "weir.memory.FailingResource",
}
CALLABLE = sorted(set(PUBLIC) - MADE_ELSEWHERE)


def refused(call: Callable[[], object]) -> str:
    """What the error says. Its class is exactly ArgumentTypeError, and nothing of nanobind's is in it."""
    with pytest.raises(weir.ArgumentTypeError) as raised:
        call()
    assert type(raised.value) is weir.ArgumentTypeError
    assert isinstance(raised.value, TypeError)
    said = str(raised.value)
    assert "incompatible function arguments" not in said
    assert "nanobind" not in said
    assert "_weir" not in said
    return said


def test_the_callables_are_found() -> None:
    expected = {
        "weir.Stream",
        "weir.Stream.wait",
        "weir.Kernel.from_ptx",
        "weir.zeros",
        "weir.stream_of",
        "weir.borrow",
        "weir.share",
        "weir.memory.use",
        "weir.fft.FFT.execute",
        "weir.linalg.Matmul.execute",
        "weir.linalg.matmul",
        "weir.random.random",
        "weir.testing.Gate.hold",
    }
    assert expected <= set(PUBLIC)
    assert len(PUBLIC) > 90


@pytest.mark.parametrize("name", CALLABLE)
def test_a_foreign_keyword_is_named(name: str) -> None:
    called = PUBLIC[name]
    said = refused(lambda: called.call(no_such_parameter=1))
    assert said == f"{called.shown}() got an unexpected keyword argument 'no_such_parameter'"


@pytest.mark.parametrize("name", [name for name in CALLABLE if not PUBLIC[name].takes_more])
def test_too_many_positional_arguments_are_counted(name: str) -> None:
    called = PUBLIC[name]
    given = called.positional() + 2
    said = refused(lambda: called.call(*[None] * given))
    takes = r"(from \d+ to )?" + str(called.positional())
    assert re.fullmatch(
        rf"{re.escape(called.shown)}\(\) takes {takes} positional arguments? but {given} were given", said
    )


@pytest.mark.parametrize("name", [name for name in CALLABLE if PUBLIC[name].required()])
def test_a_missing_argument_is_named(name: str) -> None:
    called = PUBLIC[name]
    first = called.required()[0]
    said = refused(called.call)
    of_position = f"{called.shown}() missing required argument '{first}' (pos 1)"
    assert said in (of_position, f"{called.shown}() missing required keyword argument '{first}'")


# keeps() takes any objects; share() refuses what cannot be shared with CopyError.
TAKE_ANYTHING = {"weir.Event.keeps", "weir.share"}


@pytest.mark.parametrize("name", [name for name in CALLABLE if PUBLIC[name].required() and name not in TAKE_ANYTHING])
def test_a_wrong_type_is_refused_with_what_was_given(name: str) -> None:
    called = PUBLIC[name]
    positional = called.required()
    by_name = {one.arg for of in called.overloads for one in of.kwonlyargs}
    said = refused(
        lambda: called.call(
            *[Foreign() for one in positional if one not in by_name],
            **{one: Foreign() for one in positional if one in by_name},
        )
    )
    assert "foreign object" in said or "Foreign" in said


@pytest.mark.parametrize("name", sorted(MADE_ELSEWHERE))
def test_a_class_whose_objects_come_from_elsewhere_says_from_where(name: str) -> None:
    for call in (PUBLIC[name].call, lambda: PUBLIC[name].call(1, x=2)):
        assert re.search(REFUSED_BY_CLASS, refused(call))


def test_methods_without_their_object_say_so() -> None:
    wait: Any = weir.Stream.wait
    assert refused(wait) == "Stream.wait() needs an object of weir.Stream as its first argument"
    said = refused(lambda: wait(1, 2))
    assert said == "Stream.wait() needs an object of weir.Stream as its first argument, not int"


def test_an_argument_that_is_given_twice_is_named() -> None:
    zeros: Any = weir.zeros
    assert refused(lambda: zeros(3, shape=3)) == "zeros() got multiple values for argument 'shape'"


def test_an_argument_without_a_name_is_not_taken_by_name() -> None:
    devices: Any = weir.memory.trim
    assert "unexpected keyword" in refused(lambda: devices(kinds="cpu"))
    share: Any = weir.share
    said = refused(lambda: share(x=weir.zeros(1)))
    assert said == "share() got a positional-only argument passed as keyword argument: 'x'"


SIGNATURE = (
    "def f(n: int, on: weir._weir.Stream | str | None = None, *, times: float = \\0, kind: Literal['a'] = 'a') -> int"
)
WRONG_TYPES: dict[str, tuple[list[object], dict[str, object], str]] = {
    "text for a number": (["x"], {}, "argument 'n' must be int, not str"),
    "nothing for a number": ([None], {}, "argument 'n' must be int, not None"),
    "class of Weir": ([1, weir.Event()], {}, "argument 'on' must be weir.Stream | str | None, not weir.Event"),
    "by name": ([], {"n": 1, "times": []}, "argument 'times' must be float, not list"),
    "type of a package": ([np.zeros(1)], {"kind": "b"}, "argument 'kind' must be Literal['a'], not str"),
    "an array": ([np.zeros(1), 1.5], {}, "argument 'on' must be weir.Stream | str | None, not float"),
    "nothing that is known": ([2**99], {"kind": "a"}, "cannot take these arguments: int, kind=str"),
}


@pytest.mark.parametrize("which", WRONG_TYPES)
def test_a_wrong_type_is_said_with_the_parameter_and_what_it_takes(which: str) -> None:
    args, kwargs, words = WRONG_TYPES[which]
    assert _wrong_calls._words("f", [SIGNATURE], False, args, kwargs) == f"f() {words}"


def test_a_type_error_of_other_code_passes_as_it_is() -> None:
    theirs = TypeError("adopt(): incompatible function arguments. Not Weir's.")

    class Raises:
        def __cuda_stream__(self) -> tuple[int, int]:
            raise theirs

    with pytest.raises(TypeError) as raised:
        weir.adopt(Raises())
    assert raised.value is theirs

    @_wrong_calls.explained
    def raises(x: int) -> None:
        raise theirs

    with pytest.raises(TypeError) as raised:
        raises(1)
    assert raised.value is theirs


def test_functions_of_python_keep_their_names_and_signatures() -> None:
    assert weir.stream_of.__name__ == "stream_of"
    assert str(inspect.signature(weir.stream_of)) == "(x: 'Any', /) -> 'Stream'"
