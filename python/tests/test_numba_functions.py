"""Functions that Numba compiles take arrays, streams and events of Weir; C functions are kernels (rule K2)."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from eventually import eventually
from numba_kernels import N, failed, run
from weir.testing import Gate

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")


# --- Jitted functions take arrays, streams and events of Weir


@numba.njit
def total_of(x: Any) -> float:
    total = 0.0
    for value in x.flat:
        total += value
    return total


@numba.njit
def given_back(x: Any) -> Any:
    return x


def test_a_jitted_function_takes_arrays() -> None:
    x = weir.arange(12.0).reshape(3, 4)
    assert total_of(x) == 66
    assert total_of(x[1:, ::2]) == 4 + 6 + 8 + 10
    assert total_of(x.T) == 66

    @numba.njit
    def change(y: Any) -> None:
        y[0, 0] = 100

    change(x)
    assert x[0, 0].item() == 100
    view = given_back(x)
    assert isinstance(view, np.ndarray)
    view[0, 1] = 7
    del view
    assert x[0, 1].item() == 7
    assert str(numba.typeof(x)) == "weir.Array(float64, 2d, C)"


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o6_a_jitted_function_waits_for_what_conflicts(mode: str) -> None:
    """The control, left to its own order, sees elements from before the write that is held."""
    s = weir.Stream()
    x = weir.zeros(N)
    weir.synchronize()
    assert total_of(x) == 0
    totals: list[float] = []
    began = threading.Event()

    def call() -> None:
        began.set()
        with weir.ordering(mode):
            totals.append(total_of(x))

    with Gate() as gate:
        gate.hold(s)
        weir.fill(x, 2, stream=s)
        thread = threading.Thread(target=call)
        thread.start()
        assert began.wait(60)
        if mode == "manual":
            thread.join(60)
        else:
            assert not totals
    thread.join(60)
    assert totals == [2 * N if mode == "auto" else 0]


def test_k4_a_jitted_function_does_not_get_what_a_failed_operation_was_to_write() -> None:
    x = weir.zeros(N)
    total_of(x)
    failed(x)
    with pytest.raises(weir.OperationError, match="no such file"):
        total_of(x)


def test_a_jitted_function_lets_go_of_its_arrays() -> None:
    x = weir.zeros(N)
    for _ in range(10):
        total_of(x)
    count = sys.getrefcount(x)
    for _ in range(100):
        total_of(x)
    assert sys.getrefcount(x) == count
    weir.fill(x, 3)
    alive = weakref.ref(x)
    del x
    eventually(lambda: alive() is None)


def test_memory_that_the_host_does_not_reach_is_refused() -> None:
    with pytest.raises(numba.TypingError, match="code of the host does not reach"):
        total_of(weir.ones(3, device="sim:0"))


def test_arrays_that_cannot_be_written_are_read_only() -> None:
    x = weir.asarray(np.broadcast_to(np.ones(1), 5))

    @numba.njit
    def change(y: Any) -> None:
        y[0] = 1

    assert total_of(x) == 5
    with pytest.raises(numba.TypingError, match="read"):
        change(x)


def test_streams_and_events_pass_through() -> None:
    s = weir.Stream()
    e = s.record()
    assert given_back(s) is s
    assert given_back(e) is e

    @numba.njit
    def second(a: Any, b: Any) -> Any:
        return b

    before = sys.getrefcount(s)
    assert second(e, s) is s
    assert sys.getrefcount(s) == before


@pytest.mark.parametrize("order", ["numba, weir", "weir, numba"])
def test_either_package_may_be_imported_first(order: str) -> None:
    done = run(
        f"""
        import {order}, sys
        print(numba.typeof(weir.Stream()), numba.typeof(weir.ones(3, "float32")))
        print(sum(type(finder).__module__ == "weir._when_loaded" for finder in sys.meta_path))
        """
    )
    assert done.stdout == "weir.Stream weir.Array(float32, 1d, C)\n0\n", done.stderr


def test_weir_alone_loads_no_numba() -> None:
    done = run("import sys, weir; weir.ones(3); print('numba' in sys.modules, 'llvmlite' in sys.modules)")
    assert done.stdout == "False False\n", done.stderr


def test_an_import_of_numba_that_fails_is_told_as_without_weir() -> None:
    done = run(
        """
        import sys, weir
        sys.modules["llvmlite"] = None
        try:
            import numba
        except ImportError as error:
            print(type(error).__name__, "llvmlite" in str(error))
        """
    )
    assert done.stdout == "ModuleNotFoundError True\n", done.stderr


# --- C functions

INDEX_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))
)
SHIFT = "in int64* x, inout int64* y, int64 by, float part"


def shift_in_python(begin: int, end: int, arguments: Any) -> int:
    """A C function that ctypes makes of Python."""
    x = ctypes.cast(arguments[0][0], ctypes.POINTER(ctypes.c_int64))
    y = ctypes.cast(arguments[1][0], ctypes.POINTER(ctypes.c_int64))
    by = ctypes.cast(arguments[2], ctypes.POINTER(ctypes.c_int64))[0]
    part = ctypes.cast(arguments[3], ctypes.POINTER(ctypes.c_float))[0]
    for i in range(begin, end):
        y[i] += x[i] + by + int(2 * part)
    return 7 if by < 0 else 0


SHIFT_FUNCTION = INDEX_FUNCTION(shift_in_python)


def shift_kernel() -> Any:
    return weir.kernel(SHIFT_FUNCTION, signature=SHIFT)


def test_k2_a_c_function_is_a_kernel(on: weir.Stream) -> None:
    x, y = weir.arange(N, dtype="int64", device=on.device), weir.ones(N, "int64", device=on.device)
    shift_kernel()[weir.Range(N), on](x, y, 5, 1.5).wait()
    assert y.tolist() == [i + 9 for i in range(N)]
    by_address = weir.kernel(ctypes.cast(SHIFT_FUNCTION, ctypes.c_void_p).value, signature=SHIFT)
    by_address[weir.Range(2, 5), on](x, y, np.int8(-0), 0).wait()
    assert y.tolist()[:11] == [2 * i + 9 for i in range(10)] + [19]
    assert repr(shift_kernel()).startswith("<weir.kernel ")


def test_k2_a_cfunc_of_numba_is_a_kernel(on: weir.Stream) -> None:
    @numba.cfunc(numba.int32(numba.int64, numba.int64, numba.types.CPointer(numba.types.CPointer(numba.float64))))
    def halve(begin: int, end: int, arguments: Any) -> int:
        """float64 a, float64 b: numbers alone, since Numba makes no pointers of words here."""
        return 0 if arguments[0][0] == 2 * arguments[1][0] else 1

    kernel = weir.kernel(halve, signature="float64 a, float64 b")
    kernel[weir.Range(N), on](2, 1).wait()
    with pytest.raises(weir.OperationError, match="the function returned 1"):
        kernel[weir.Range(N), on](2, 2).wait()


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o1_a_c_function_comes_after_what_writes_its_operands(mode: str, queue: str) -> None:
    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y = weir.zeros(N, "int64", device=queue), weir.zeros(N, "int64", device=queue)
    weir.synchronize()
    with Gate() as gate, weir.ordering(mode):
        gate.hold(first)
        weir.fill(x, 7, stream=first)
        after = shift_kernel()[weir.Range(N), second](x, y, 0, 0)
        if mode == "manual":
            after.wait()
        else:
            assert not after.done
    weir.synchronize()
    assert y.tolist() == [7 if mode == "auto" else 0] * N


def test_k4_a_c_function_that_returns_another_number_fails(on: weir.Stream) -> None:
    x, y = weir.ones(N, "int64", device=on.device), weir.ones(N, "int64", device=on.device)
    with pytest.raises(weir.OperationError, match="the function returned 7"):
        shift_kernel()[weir.Range(N), on](x, y, -1, 0).wait()


def test_k4_a_c_function_whose_output_is_declared_out_makes_it_valid(queue: str) -> None:
    x, y = weir.ones(N, "int64", device=queue), weir.zeros(N, "int64", device=queue)
    for use, is_valid in (("inout", False), ("out", True)):
        failed(y)
        weir.kernel(SHIFT_FUNCTION, signature=SHIFT.replace("inout", use))[weir.Range(N - 1)](x, y, 0, 0)
        if is_valid:
            assert len(y.tolist()) == N
        else:
            with pytest.raises(weir.OperationError, match="no such file"):
                y.tolist()


def compare_in_python(begin: int, end: int, arguments: Any) -> int:
    """A number of each type, and an array that gets them."""
    to = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))[0]
    for k, kind in enumerate(NUMBER_TYPES.values()):
        to[k] = ctypes.cast(arguments[k + 1], ctypes.POINTER(kind))[0]
    return 0


NUMBER_TYPES: dict[str, Any] = {
    "uint8": ctypes.c_uint8,
    "unsigned short": ctypes.c_ushort,
    "unsigned": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "uint64": ctypes.c_uint64,
    "char": ctypes.c_byte,
    "int64_t": ctypes.c_int64,
    "long long": ctypes.c_longlong,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
COMPARE_FUNCTION = INDEX_FUNCTION(compare_in_python)
COMPARE = "out double* to, " + ", ".join(f"{kind} x{k}" for k, kind in enumerate(NUMBER_TYPES))


def test_numbers_are_converted_to_the_types_that_c_declares() -> None:
    kernel = weir.kernel(COMPARE_FUNCTION, signature=COMPARE)
    y = weir.zeros(len(NUMBER_TYPES))
    given = [255, 65535, 2**32 - 1, 2**63, 2**64 - 1, -128, -(2**63), True, 3, 2**70]
    kernel[weir.Range(1)](y, *given).wait()
    assert y.tolist() == [float(one) for one in given]
    kernel[weir.Range(1)](y, *(np.int16(k) for k in range(len(given)))).wait()
    assert y.tolist() == list(range(len(given)))


@pytest.mark.parametrize(
    ("position", "number", "error", "text"),
    [
        (0, 256, weir.ArgumentError, "x0 is 256, which is out of range of the uint8"),
        (0, -1, weir.ArgumentError, "x0 is -1, which is out of range of the uint8"),
        (0, 1.0, weir.ArgumentTypeError, "x0 is 1.0, and the signature declares uint8"),
        (4, 2**64, weir.ArgumentError, "out of range of the uint64"),
        (6, -(2**63) - 1, weir.ArgumentError, "out of range of the int64"),
        (8, 1e300, weir.ArgumentError, "x8 is 1e.300, which is out of range of the float32"),
        (8, 1j, weir.ArgumentTypeError, "declares float32: pass a number of its kind"),
    ],
)
def test_numbers_that_a_declared_type_does_not_have_are_refused(
    position: int, number: Any, error: type[Exception], text: str
) -> None:
    numbers: list[Any] = [0] * len(NUMBER_TYPES)
    numbers[position] = number
    kernel = weir.kernel(COMPARE_FUNCTION, signature=COMPARE)
    with pytest.raises(error, match=text):
        kernel[weir.Range(1)](weir.zeros(len(NUMBER_TYPES)), *numbers)


def test_an_array_of_any_elements_is_declared_as_void() -> None:
    kernel = weir.kernel(COMPARE_FUNCTION, signature=COMPARE.replace("double* to", "void* to"))
    y = weir.zeros(len(NUMBER_TYPES))
    kernel[weir.Range(1)](y, *range(len(NUMBER_TYPES))).wait()
    assert y.tolist() == list(range(len(NUMBER_TYPES)))


def test_a_cfunc_of_another_signature_is_refused() -> None:
    @numba.cfunc(numba.float64(numba.float64))
    def other(x: float) -> float:
        return x

    with pytest.raises(weir.ArgumentError, match=r"float64.*make it for int32"):
        weir.kernel(other, signature="float64 a")


def test_a_range_may_have_all_indices_that_there_can_be() -> None:
    """Begin and end of each part are within the range."""
    parts: list[tuple[int, int]] = []

    def note(begin: int, end: int, arguments: Any) -> int:
        parts.append((begin, end))
        return 0

    function = INDEX_FUNCTION(note)
    for last in (2**63 - 1, 2**63 - 100):
        parts.clear()
        weir.kernel(function, signature="")[weir.Range(last)]().wait()
        parts.sort()
        assert parts[0][0] == 0
        assert parts[-1][1] == last
        assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))


WRONG_C: dict[str, tuple[Callable[[Any, weir.Array], object], type[Exception], str]] = {
    "elements": (
        lambda k, x: k[weir.Range(4)](x.astype("int32"), x, 1, 1),
        weir.ArgumentTypeError,
        "an array of int32",
    ),
    "strides": (
        lambda k, x: k[weir.Range(4)](x[::2], x, 1, 1),
        weir.ArgumentTypeError,
        "do not lie one after the other",
    ),
    "no array": (lambda k, x: k[weir.Range(4)](3, x, 1, 1), weir.ArgumentTypeError, "the signature declares an array"),
    "no number": (lambda k, x: k[weir.Range(4)](x, x, x, 1), weir.ArgumentTypeError, "declares a number of int64"),
    "a fraction": (lambda k, x: k[weir.Range(4)](x, x, 1.5, 1), weir.ArgumentTypeError, "the signature declares int64"),
    "groups": (lambda k, x: k[weir.NdRange(4, 2)](x, x, 1, 1), weir.ArgumentError, "knows no groups"),
    "another use": (lambda k, x: k[weir.Range(4)](x, weir.In(x), 1, 1), weir.ArgumentError, "declared weir.In"),
    "no use": (lambda k, x: weir.kernel(1, signature="float* x"), weir.ArgumentError, "write in, out or inout"),
    "nonsense": (lambda k, x: weir.kernel(1, signature="in float* x y"), weir.ArgumentError, "one . behind the type"),
    "a type": (lambda k, x: weir.kernel(1, signature="floaty x"), weir.ArgumentError, "floaty"),
    "null": (lambda k, x: weir.kernel(0, signature="float x"), weir.ArgumentError, "the address 0"),
    "no function": (
        lambda k, x: weir.kernel("f", signature="float x"),
        weir.ArgumentTypeError,
        "the address of a C function",
    ),
}


@pytest.mark.parametrize("which", WRONG_C)
def test_wrong_use_of_c_functions_is_refused(which: str) -> None:
    call, error, text = WRONG_C[which]
    x = weir.ones(8, "int64")
    with pytest.raises(error, match=text):
        call(shift_kernel(), x)
    assert x.tolist() == [1] * 8
