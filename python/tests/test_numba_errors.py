"""What goes wrong with kernels whose bodies are Python, and what their messages say (rule K4)."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from numba_kernels import N, axpy, double, message, run

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")


# --- Errors


def test_k4_an_exception_of_the_body_fails_the_launch_and_what_depends_on_it(on: weir.Stream) -> None:
    @weir.kernel
    def refuse(i: int, x: Any, y: Any) -> None:
        if x[i] > 5:
            raise ValueError("too large", x[i])
        y[i] = x[i]

    x, y, z = weir.arange(10.0, device=on.device), weir.zeros(10, device=on.device), weir.zeros(10, device=on.device)
    event = refuse[weir.Range(10), on](x, y)
    double[weir.Range(10), on](y, z)
    with pytest.raises(weir.OperationError, match=r"ValueError: \('too large', [6-9]\.0\)") as raised:
        event.wait()
    assert raised.value.label == "refuse"
    assert raised.value.file == __file__
    cause = raised.value.__cause__
    assert isinstance(cause, ValueError)
    if hasattr(cause, "__notes__"):
        assert "in refuse" in cause.__notes__[0]
    for one in (y, z):
        with pytest.raises(weir.OperationError, match="refuse"):
            one.tolist()
    assert x.tolist() == list(range(10))


def test_k4_division_by_zero(on: weir.Stream) -> None:
    def inverse(i: int, y: Any) -> None:
        y[i] = 1 / y[i]

    y = weir.array([1.0, 0.0, 2.0], device=on.device)
    with pytest.raises(weir.OperationError, match="ZeroDivisionError: division by zero"):
        weir.kernel(inverse)[weir.Range(3), on](y).wait()
    y = weir.array([1.0, 0.0, 2.0], device=on.device)
    weir.kernel(error_model="numpy")(inverse)[weir.Range(3), on](y).wait()
    assert y.tolist() == [1.0, math.inf, 0.5]


def test_k4_indices_out_of_range_where_they_are_checked(on: weir.Stream) -> None:
    @weir.kernel(boundscheck=True)
    def shift(i: int, x: Any, y: Any) -> None:
        y[i] = x[i + 1]

    x, y = weir.ones(10, device=on.device), weir.zeros(10, device=on.device)
    shift[weir.Range(9), on](x, y).wait()
    with pytest.raises(weir.OperationError, match="IndexError: index is out of bounds"):
        shift[weir.Range(10), on](x, y).wait()


def test_k4_many_threads_that_fail_at_once_make_one_error() -> None:
    @weir.kernel
    def fail(i: int, y: Any) -> None:
        if i > 100:
            raise KeyError(i)
        y[i] = i

    with pytest.raises(weir.OperationError, match="KeyError"):
        fail[weir.Range(1_000_000)](weir.zeros(1_000_000)).wait()


WRONG: dict[str, tuple[Callable[[weir.Array, weir.Array], object], type[Exception], str]] = {
    "no space": (lambda x, y: double(x, y), weir.ArgumentTypeError, r"call double\[weir.Range\(n\)\]\(x, y\)"),
    "a number": (
        lambda x, y: double[N](x, y),
        weir.ArgumentTypeError,
        r"double\[weir.Range\(n\)\]\(...\).* and got \[1000\]",
    ),
    "blocks": (
        lambda x, y: double[4, 250](x, y),
        weir.ArgumentTypeError,
        r"weir.NdRange\(blocks \* threads, threads\)",
    ),
    "too much": (lambda x, y: double[weir.Range(N), None, (), 1](x, y), weir.ArgumentTypeError, "is launched as"),
    "negative": (lambda x, y: weir.Range(-1), weir.ArgumentError, "the extent -1: pass numbers from 0 on"),
    "a fraction": (lambda x, y: weir.Range(1.5), weir.ArgumentTypeError, "the extent 1.5: pass whole numbers"),
    "four": (lambda x, y: weir.Range(1, 1, 1, 1), weir.ArgumentError, "got 4 extents: pass one to three"),
    "none": (lambda x, y: weir.Range(), weir.ArgumentError, "got 0 extents"),
    "too many indices": (lambda x, y: weir.Range(2**32, 2**32), weir.ArgumentError, "more than there can be"),
    "a broken group": (lambda x, y: weir.NdRange(10, 4), weir.ArgumentError, "a multiple of the group"),
    "an empty group": (lambda x, y: weir.NdRange(10, 0), weir.ArgumentError, "a multiple of the group"),
    "dimensions": (lambda x, y: weir.NdRange((10, 10), 5), weir.ArgumentError, "2 dimensions of items and 1 of groups"),
    "few": (
        lambda x, y: double[weir.Range(N)](x),
        weir.ArgumentError,
        r"takes 2 arguments behind the index \(x, y\), and got 1",
    ),
    "many": (
        lambda x, y: double[weir.Range(N)](x, y, 1),
        weir.ArgumentError,
        "and got 3: pass an array or a number for each",
    ),
    "a list": (
        lambda x, y: double[weir.Range(N)](x, [1]),
        weir.ArgumentTypeError,
        "the argument y is .*: pass a weir.Array",
    ),
    "a token": (
        lambda x, y: double[weir.Range(N)](weir.Token("slot"), y),
        weir.ArgumentTypeError,
        r"the argument x is <weir.Token \"slot\">, a token, which has no elements.*: pass an array or a number",
    ),
    "a token that is read": (
        lambda x, y: double[weir.Range(N)](weir.In(weir.Token("slot")), y),
        weir.ArgumentTypeError,
        r"the argument x is weir.In\(<weir.Token \"slot\">\), a token, which has no elements",
    ),
    "a token that is written": (
        lambda x, y: double[weir.Range(N)](x, weir.InOut(weir.Token("slot"))),
        weir.ArgumentTypeError,
        r"the argument y is .*order the launch by an event",
    ),
    "a text": (
        lambda x, y: double[weir.Range(N)]("x", y),
        weir.ArgumentTypeError,
        "the argument x is 'x': pass a weir.Array",
    ),
    "a name": (lambda x, y: double[weir.Range(N)](x, y=y), weir.ArgumentTypeError, "no argument by name, and got y"),
    "large": (
        lambda x, y: axpy[weir.Range(N)](2**63, x, y),
        weir.ArgumentError,
        "the range of int64: pass numpy.uint64",
    ),
    "float16": (lambda x, y: double[weir.Range(N)](x.astype("float16"), y), weir.ArgumentTypeError, "astype..float32"),
    "bfloat16": (
        lambda x, y: double[weir.Range(N)](x.astype("bfloat16"), y),
        weir.ArgumentTypeError,
        "weir.elementwise",
    ),
    "another device": (
        lambda x, y: double[weir.Range(N)](x, weir.ones(N, device="sim:0")),
        weir.ArgumentError,
        "sim:0",
    ),
    "a stream": (lambda x, y: double[weir.Range(N), "s"](x, y), weir.ArgumentTypeError, "no stream"),
    "its stream": (lambda x, y: double[weir.Range(N), weir.Stream("sim:0")](x, y), weir.ArgumentError, "sim:0"),
    "after": (lambda x, y: double[weir.Range(N), None, 3](x, y), weir.ArgumentTypeError, "after= got 3"),
    "shared elements": (
        lambda x, y: double[weir.Range(N)](x, weir.asarray(np.broadcast_to(np.ones(1), N))),
        weir.ArgumentError,
        "elements of it share memory",
    ),
    "a constant": (
        lambda x, y: double[weir.Range(1)](x, 5),
        weir.ArgumentError,
        "double does not compile for .x: array",
    ),
    "no function": (lambda x, y: weir.kernel(3), weir.ArgumentTypeError, "pass a Python function"),  # type: ignore
    "no index": (lambda x, y: weir.kernel(lambda: None), weir.ArgumentError, "the first one is the index"),
    "defaults": (lambda x, y: weir.kernel(lambda i, a=1: None), weir.ArgumentError, "has the parameter a=1"),
    "stars": (lambda x, y: weir.kernel(lambda i, *a: None), weir.ArgumentError, "has the parameter .a"),
    "errors": (lambda x, y: weir.kernel(error_model="c"), weir.ArgumentError, "pass .python. or .numpy."),  # type: ignore
}


@pytest.mark.parametrize("which", WRONG)
def test_wrong_use_is_refused_in_plain_words(which: str) -> None:
    call, error, text = WRONG[which]
    x, y = weir.ones(N), weir.zeros(N)
    with pytest.raises(error, match=text) as raised:
        call(x, y)
    assert "::" not in str(raised.value)
    assert y.tolist() == [0] * N


def test_what_does_not_compile_is_told_in_the_words_of_numba() -> None:
    @weir.kernel
    def wrong(i: int, x: Any) -> None:
        x[i] = x.no_such_thing

    text = message(weir.ArgumentError, lambda: wrong[weir.Range(3)](weir.ones(3)))
    assert "the kernel wrong does not compile for (x: array(float64, 1d, C))" in text
    assert "Unknown attribute 'no_such_thing'" in text
    assert "\x1b" not in text


def line_of(function: Any, text: str) -> int:
    """The number of the line of this file that has the text."""
    lines, first = inspect.getsourcelines(getattr(function, "__wrapped__", function))
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_a_body_that_is_a_generator_is_refused_with_the_line_of_its_yield() -> None:
    def steps(i: int, y: Any) -> Any:
        y[i] = 1
        yield

    def empty(i: int, y: Any) -> Any:
        yield from y

    async def later(i: int, y: Any) -> None:
        y[i] = 1

    async def both(i: int, y: Any) -> Any:
        yield i

    for body, text in ((steps, "yield"), (empty, "yield from"), (later, "async def"), (both, "yield i")):
        said = message(weir.ArgumentError, lambda body=body: weir.kernel(body))  # type: ignore[misc]
        assert said.startswith(f"the kernel {body.__name__}, line {line_of(body, text)}, ")
        assert ("a coroutine" if body is later else "a generator") in said


TABLE = weir.arange(4.0)


@weir.kernel
def imports(i: int, y: Any) -> None:
    import math  # refused

    y[i] = math.sqrt(2)


@weir.kernel
def formats(i: int, y: Any) -> None:
    y[i] = len(f"{i:>3}")  # refused


@weir.kernel
def opens(i: int, y: Any) -> None:
    with open("x"):  # refused
        y[i] = 1


@weir.kernel
def unpacks(i: int, y: Any) -> None:
    first, *_ = (1, 2, 3)  # refused
    y[i] = first


@weir.kernel
def defines(i: int, y: Any) -> None:
    class Local:  # refused
        pass

    y[i] = 1


@weir.kernel
def table(i: int, y: Any) -> None:
    y[i] = 1
    y[i] += TABLE[i]  # refused


@weir.kernel
def undefined(i: int, y: Any) -> None:
    y[i] = 1
    y[i] = no_such_function(3)  # type: ignore[name-defined]  # refused  # noqa: F821


REFUSED: dict[str, tuple[Any, str]] = {
    "import": (imports, "does not compile"),
    "a format": (formats, "does not compile"),
    "with": (opens, "does not compile"),
    "a star": (unpacks, "does not compile"),
    "a class": (defines, "does not compile"),
    "an array of the module": (table, "TABLE is a weir.Array, which a body does not know by name: make it a parameter"),
    "an unknown name": (undefined, "the name no_such_function is not defined"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_numba_cannot_compile_is_refused_with_the_line(which: str, on: weir.Stream) -> None:
    kernel, why = REFUSED[which]
    said = message(weir.ArgumentError, lambda: kernel[weir.Range(4), on](weir.zeros(4, device=on.device)))
    assert f"the kernel {kernel.name}" in said
    assert f'line {line_of(kernel, "refused")}, "' in said
    assert why in said


def test_whatever_numba_raises_is_an_argument_error(on: weir.Stream) -> None:
    @weir.kernel
    def indexed_twice(i: int, y: Any) -> None:
        y[...][i] = 1

    said = message(weir.ArgumentError, lambda: indexed_twice[weir.Range(4), on](weir.zeros(4, device=on.device)))
    assert "the kernel indexed_twice" in said
    assert "does not compile" in said
    assert __file__ in said


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes from Python 3.11 on")
def test_k4_exceptions_have_a_note_of_where_they_come_from(on: weir.Stream) -> None:
    """The line of a raise; the lines of the body for exceptions of Numba's, which keep none."""

    def own(i: int, y: Any) -> None:
        if i == 3:
            raise ValueError("no")

    def out_of_range(i: int, y: Any) -> None:
        y[i] = y[i + 1]

    def divides(i: int, y: Any) -> None:
        y[i] = 1 // int(y[i])

    for body, expected in (
        (own, f"line {line_of(own, 'raise')}"),
        (out_of_range, f"lines {line_of(out_of_range, 'def')} to {line_of(out_of_range, 'y[i] =')}"),
        (divides, f"lines {line_of(divides, 'def')} to {line_of(divides, 'y[i] =')}"),
    ):
        y = weir.zeros(4, device=on.device)
        with pytest.raises(weir.OperationError) as raised:
            weir.kernel(boundscheck=True)(body)[weir.Range(4), on](y).wait()
        cause: Any = raised.value.__cause__
        (note,) = cause.__notes__
        assert note == f"in {body.__name__}, {__file__}, {expected}"


def test_functions_that_numba_runs_in_parallel_are_refused() -> None:
    @numba.njit(parallel=True)
    def total(x: Any) -> float:
        sum_ = 0.0
        for k in numba.prange(x.size):
            sum_ += x[k]
        return sum_

    @weir.kernel
    def calls(i: int, x: Any) -> None:
        x[i] = total(x)

    text = message(weir.ArgumentError, lambda: calls[weir.Range(3)](weir.ones(3)))
    assert "calls total, which is compiled with parallel=True" in text


def test_without_numba_a_launch_says_what_to_install() -> None:
    done = run(
        """
        import sys
        sys.modules["numba"] = None
        import weir
        @weir.kernel
        def f(i, x):
            x[i] = 1
        try:
            f[weir.Range(3)](weir.ones(3))
        except weir.MissingLibrary as error:
            print(error)
        """
    )
    assert done.returncode == 0, done.stderr
    assert "pip install numba" in done.stdout
