"""Calls with arguments that they cannot take: the error says what was given and what is wanted."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import weir
from eventually import eventually
from weir.testing import Gate

PLACES = [weir, weir.memory, weir.fft, weir.random, weir.sparse, weir.testing]


def parameters(signature: str) -> tuple[int, list[str]]:
    """How many positional ones there are, and the names of those that are given by name alone."""
    function = ast.parse(re.sub(r"\\\d+", "...", signature) + ": ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    of = function.args
    return len(of.posonlyargs) + len(of.args), [one.arg for one in of.kwonlyargs]


def public_functions() -> Iterator[tuple[str, type | None, Any]]:
    """All functions of the extension, with the class of which they are methods."""
    for place in PLACES:
        for name, one in vars(place).items():
            if name.startswith("_") or isinstance(one, types.ModuleType):
                continue
            full = f"{place.__name__}.{name}"
            if not isinstance(one, type):
                yield full, None, one
                continue
            for its_name, its in vars(one).items():
                if not its_name.startswith("__") or its_name == "__init__":
                    yield (
                        f"{full}.{its_name}",
                        None if isinstance(its, staticmethod) else one,
                        getattr(its, "__func__", its),
                    )


def takers() -> dict[str, Callable[[object], object]]:
    """Each function that takes anything, as a call with the same object for every parameter."""
    s = weir.Stream()
    x = weir.zeros(3)
    made: dict[type, Any] = {
        weir.Array: x,
        weir.Device: s.device,
        weir.Event: s.record(),
        weir.Stream: s,
        weir.fft.FFT: weir.fft.FFT(x),
        weir.sparse.DirectSolver: weir.sparse.DirectSolver(
            (weir.ones(1), weir.zeros(1, "int32"), weir.arange(2, dtype="int32"), (1, 1)), weir.ones(1)
        ),
    }
    found: dict[str, Callable[[object], object]] = {}
    for name, cls, function in public_functions():
        for signature, *_ in getattr(function, "__nb_signature__", ()):
            count, named = parameters(signature)
            bound = function
            if name.endswith(".__init__"):
                bound, count = cls, count - 1
            elif cls is not None:
                if cls not in made:
                    continue
                bound, count = function.__get__(made[cls]), count - 1
            if count + len(named) > 0:

                def call(
                    given: object, bound: Any = bound, count: int = count, named: tuple[str, ...] = tuple(named)
                ) -> object:
                    return bound(*[given] * count, **dict.fromkeys(named, given))

                found[name] = call
    return found


TAKERS = takers()
# Their arguments are what NumPy hands over.
NOT_FOR_USERS = {"weir.Array.__array_function__", "weir.Array.__array_ufunc__"}


def test_the_functions_are_found() -> None:
    assert {
        "weir.Stream.__init__",
        "weir.Stream.wait",
        "weir.adopt",
        "weir.memory.use.__init__",
        "weir.fft.fft",
    } <= set(TAKERS)
    assert len(TAKERS) > 50


class Anything:
    """An object that no call takes."""


@pytest.mark.parametrize("given", [None, Anything(), "text", 1.5, -(2**70)], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("name", sorted(set(TAKERS) - NOT_FOR_USERS))
def test_every_parameter_of_every_function_is_converted_with_words(name: str, given: object) -> None:
    """Nanobind lists signatures as soon as one of the parameters is none that it converts. All get the same here."""
    try:
        TAKERS[name](given)
    except weir.Error as error:
        assert "::" not in str(error)


REFUSED: dict[str, tuple[Callable[[weir.Stream, weir.Array], object], type[Exception], str]] = {
    "wait for nothing": (lambda s, _: s.wait(None), weir.ArgumentTypeError, r"wait\(\) got None: pass a weir.Event or"),
    "wait for a text": (lambda s, _: s.wait("x"), weir.ArgumentTypeError, "'x' is no stream"),
    "no device": (
        lambda *_: weir.Device(None),
        weir.ArgumentTypeError,
        r'Device\(\) got None: pass a name such as "cpu"',
    ),
    "time to nothing": (
        lambda s, _: s.record().elapsed_time(None),
        weir.ArgumentTypeError,
        "end is None: pass a weir.Event",
    ),
    "priority": (
        lambda *_: weir.Stream(priority=2**40),
        weir.ArgumentError,
        "priority is 1099511627776, which is out of range: pass an integer from -2147483648 to 2147483647",
    ),
    "no priority": (lambda *_: weir.Stream(priority=None), weir.ArgumentTypeError, "priority is None: pass an integer"),
    "blocking": (lambda *_: weir.Stream(blocking=1), weir.ArgumentTypeError, "blocking is 1: pass True or False"),
    "name": (lambda *_: weir.Stream(name=3), weir.ArgumentTypeError, "name is 3: pass a text, or None"),
    "timing": (lambda *_: weir.Event(timing="x"), weir.ArgumentTypeError, "timing is 'x': pass True or False"),
    "after nothing": (
        lambda s, _: weir.keep_alive([s], after=None),
        weir.ArgumentTypeError,
        "after is None: pass a weir.Event, such as stream.record",
    ),
    "options": (
        lambda *_: weir.Kernel("", "k", "", options="-O3"),
        weir.ArgumentTypeError,
        "options is '-O3': pass a list of texts, one for each option",
    ),
    "an option": (
        lambda *_: weir.Kernel("", "k", "", options=[3]),
        weir.ArgumentTypeError,
        r"options is \[3\]: pass a list",
    ),
    "source": (lambda *_: weir.Kernel(None, "k", ""), weir.ArgumentTypeError, "source is None: pass a text"),
    "signature": (lambda *_: weir.Kernel("", "k", None), weir.ArgumentTypeError, "signature is None: pass a text"),
    "cubin": (lambda *_: weir.Kernel.from_cubin("x", "k", ""), weir.ArgumentTypeError, "image is 'x': pass bytes"),
    "parallel": (lambda *_: weir.parallel(2.5), weir.ArgumentTypeError, "n is 2.5: pass an integer"),
    "kind": (lambda *_: weir.devices(3), weir.ArgumentTypeError, 'kind is 3: pass "cpu"'),
    "ordering": (lambda *_: weir.ordering(None), weir.ArgumentTypeError, "None is no mode of ordering"),
    "mode": (lambda *_: weir.check(mode=3), weir.ArgumentTypeError, 'mode is 3: pass "collect"'),
    "assume": (lambda *_: weir.check(assume=3), weir.ArgumentTypeError, 'assume is 3: pass "manual"'),
    "trace": (lambda *_: weir.trace(None), weir.ArgumentTypeError, r"trace\(\) got None: pass a path"),
    "explain": (lambda *_: weir.explain(None), weir.ArgumentTypeError, r"explain\(\) got None: pass a weir.Array"),
    "condition": (lambda _, x: weir.where(None, x, x), weir.ArgumentTypeError, r"where\(\) got None"),
    "an array of nothing": (lambda *_: weir.array(None), weir.ArgumentTypeError, r"array\(\) got None"),
    "a task's wait": (
        lambda *_: weir.host_task(print, wait=None),
        weir.ArgumentTypeError,
        "wait is None: pass True or",
    ),
    "resource": (lambda *_: weir.memory.use(3), weir.ArgumentTypeError, "resource is 3: pass a resource such as"),
    "failing": (lambda *_: weir.memory.failing(at=-1), weir.ArgumentError, "at is -1: pass an integer from 0"),
    "memory": (
        lambda *_: weir.testing.simulated("sim:7", memory="x"),
        weir.ArgumentTypeError,
        "memory is 'x': pass a number of bytes",
    ),
    "keepdims": (lambda _, x: x.sum(keepdims=3), weir.ArgumentTypeError, "keepdims is 3: pass True or False"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_cannot_be_is_refused_with_what_was_given_and_what_is_wanted(which: str) -> None:
    call, error, message = REFUSED[which]
    with pytest.raises(error, match=message):
        call(weir.Stream(), weir.zeros(3))


def test_numbers_of_numpy_are_taken(cuda: weir.Device) -> None:
    assert weir.adopt(np.int64(1), device=cuda) == weir.adopt(1, device=cuda)
    for none in (np.float64(1), np.ones(1, dtype=np.int64), weir.ones(1, "int64"), True):
        with pytest.raises(weir.ArgumentTypeError, match="is no stream"):
            weir.adopt(none, device=cuda)
    assert weir.Stream(priority=np.int8(-1)).priority == -1
    assert weir.Event(timing=np.bool_(True)).timing
    assert not weir.Event(timing=np.bool_(False)).timing
    assert weir.random.random(2, seed=2**64 - 1).shape == (2,)
    assert weir.memory.failing(seed=2**64 - 1).asked == 0


@pytest.mark.parametrize("name", ["cpu", "cpu:inline", "sim:0", "cuda:0"])
def test_s7_the_current_stream_of_what_names_a_device(name: str, cuda: weir.Device) -> None:
    s = weir.Stream(name)
    with s:
        with weir.Stream("sim:1"):
            for which in (name, weir.Device(name), weir.zeros(1, device=name), s, s.record()):
                assert weir.current_stream(which) is s
        assert weir.current_stream(None) is s
        assert weir.current_stream() is s
    assert weir.current_stream(name) != s
    assert weir.current_stream(name) is weir.current_stream(weir.Device(name))


def test_the_current_stream_of_what_names_none() -> None:
    with pytest.raises(weir.ArgumentError, match='there is no device "nope"'):
        weir.current_stream("nope")
    with pytest.raises(weir.ArgumentTypeError, match=r"device is 3: pass a weir\.Device or a name"):
        weir.current_stream(3)


@pytest.mark.parametrize("name", ["cpu", "cpu:inline", "sim:0", "cuda:0"])
def test_s4_what_a_closed_stream_refuses_and_what_it_still_answers(name: str, cuda: weir.Device) -> None:
    s = weir.Stream(name, name="x", priority=-1)
    other = weir.Stream(name)
    before = other.record()
    with Gate() as gate:
        if name != "cpu:inline":
            gate.hold(s)
        x = weir.zeros(2, stream=s)
        end = s.record()
        s.close()
        s.close()
        if name != "cpu:inline":
            assert not s.done
            assert not s.query()
    end.synchronize()
    eventually(lambda: s.done)
    assert s.query()
    assert not s
    assert (s.name, s.priority, s.device.name, s.blocking) == ("x", -1, name, False)
    assert s.unique_id == hash(s)
    assert s == s
    assert "closed" in repr(s)
    assert end.done
    other.wait(end)
    assert x.tolist() == [0, 0]
    refused: list[Callable[[], object]] = [
        s.record,
        s.synchronize,
        s.sync,
        lambda: s.wait(before),
        lambda: s.wait(other),
        lambda: other.wait(s),
        lambda: before.wait(s),
        lambda: weir.Event().record(s),
        s.__enter__,
        lambda: s.handle,
        lambda: s.ptr,
        lambda: s.cuda_stream,
        s.__cuda_stream__,
        lambda: weir.zeros(2, stream=s),
        lambda: weir.host_task(print, stream=s),
        lambda: weir.fill(x, 1, stream=s),
        lambda: weir.copy(x, x, stream=s),
        lambda: weir.empty(2, stream=s),
        lambda: weir.array([1.0], stream=s),
        lambda: weir.asarray([1.0], stream=s),
        lambda: weir.random.random(2, stream=s),
        lambda: weir.fft.fft(x, stream=s),
        lambda: weir.ordering("auto", stream=s),
        lambda: Gate().hold(s),
        lambda: weir.borrow(x, stream=s).__enter__(),
        lambda: weir.adopt(s),
    ]
    for use in refused:
        with pytest.raises(weir.StateError, match="is closed"):
            use()
