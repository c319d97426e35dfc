"""Arrays of other packages as operands: copy, fill, operators, host tasks and kernels (X6, P2)."""

from __future__ import annotations

import array
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from weir.testing import Gate
from weir_conformance._dlpack import READ_ONLY, Description, Producer, floats


def foreign(*values: float, read_only: bool = False) -> tuple[Producer, Any]:
    """An array of a package that Weir does not know, and its memory."""
    memory = floats(*values)
    return Producer(Description(memory, (len(values),), (1,), flags=READ_ONLY if read_only else 0)), memory


def test_fill_writes_the_memory_of_another_package() -> None:
    x, memory = foreign(1, 2, 3)
    weir.fill(x, 7)
    assert list(memory) == [7, 7, 7]  # a package without streams: the work is complete when the call returns
    y = np.zeros(4)
    weir.fill(y, 2)
    assert (y == 2).all()


def test_copy_between_packages() -> None:
    x, _ = foreign(1, 2, 3)
    y, memory = foreign(0, 0, 0)
    weir.copy(y, x)
    assert list(memory) == [1, 2, 3]
    ours = weir.zeros(3, "float32")
    weir.copy(ours, x)
    assert ours.tolist() == [1, 2, 3]
    ours += 1
    weir.copy(y, ours)
    assert list(memory) == [2, 3, 4]


def test_elements_are_set_from_another_package() -> None:
    ours = weir.zeros(5, "float32")
    ours[1:4] = foreign(1, 2, 3)[0]
    assert ours.tolist() == [0, 1, 2, 3, 0]


def test_operators_take_arrays_of_other_packages() -> None:
    ours = weir.full(3, 10, "float32")
    x, _ = foreign(1, 2, 3)
    assert (ours + x).tolist() == [11, 12, 13]
    assert (ours > x).tolist() == [True, True, True]
    ours -= x
    assert ours.tolist() == [9, 8, 7]


def test_memory_that_is_handed_over_twice_is_the_same_memory() -> None:
    """Each import is a buffer of its own; results are as if all had been read before anything is written."""
    b = np.arange(6.0)
    later, first = weir.asarray(b[1:]), weir.asarray(b[:-1])
    later += first
    assert b.tolist() == [0, 1, 3, 5, 7, 9]
    weir.copy(weir.asarray(b[::-1]), weir.asarray(b))
    assert b.tolist() == [9, 7, 5, 3, 1, 0]
    grid = np.arange(9.0).reshape(3, 3)
    weir.copy(weir.asarray(grid), weir.asarray(grid.T))
    assert grid.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    memory = floats(1, 2, 3, 4)
    whole = Producer(Description(memory, (3,), (1,)))
    behind = Producer(Description(memory, (3,), (1,), byte_offset=4))
    total = weir.elementwise("float32 x, float32 y", "float32 z", "z = x + y")
    total(whole, behind, out=behind)
    assert list(memory) == [1, 3, 5, 7]
    ours = weir.arange(6.0)
    part = ours[1:]
    part += weir.asarray(ours.numpy()[:-1])
    assert ours.tolist() == [0, 1, 3, 5, 7, 9]


def test_an_operator_is_over_before_the_package_can_change_its_memory() -> None:
    """The package has no streams: the call that enqueues returns once the operation is complete."""
    ours = weir.full(3, 10, "float32")
    x, memory = foreign(1, 2, 3)
    s = weir.Stream()
    gate = Gate()
    gate.hold(s)
    results = []

    def add() -> None:
        with s:
            results.append(ours + x)
        memory[:] = [100, 100, 100]

    adding = threading.Thread(target=add)
    adding.start()
    assert list(memory) == [1, 2, 3]  # the gate is closed, so the call cannot have returned
    gate.open()
    adding.join()
    assert results[0].tolist() == [11, 12, 13]


def test_host_tasks_take_them_as_declared_operands() -> None:
    x, memory = foreign(1, 2, 3)
    seen: list[float] = []

    def task(values: Any) -> None:
        seen.extend(values)
        values[:] = 9

    weir.host_task(task, weir.InOut(x), wait=True)
    assert seen == [1, 2, 3]
    assert list(memory) == [9, 9, 9]


def test_host_tasks_declare_reads_and_writes_of_them() -> None:
    x, _ = foreign(1, 2, 3)
    y, memory = foreign(0, 0, 0)
    weir.host_task(lambda: None, reads=x, writes=[y, np.zeros(3)], wait=True)
    assert list(memory) == [0, 0, 0]


def test_memory_that_is_read_only_there_is_not_written() -> None:
    x, memory = foreign(1, 2, 3, read_only=True)
    for write in (
        lambda: weir.fill(x, 0),
        lambda: weir.copy(x, weir.zeros(3, "float32")),
        lambda: weir.host_task(lambda values: None, weir.Out(x)),
        lambda: weir.host_task(lambda: None, writes=x),
    ):
        with pytest.raises(weir.ArgumentError, match="read"):
            write()
    assert (weir.zeros(3, "float32") + x).tolist() == [1, 2, 3]
    assert list(memory) == [1, 2, 3]


def test_what_is_taken_is_given_back() -> None:
    x, _ = foreign(1, 2, 3)
    ours = weir.zeros(3, "float32")
    for _ in range(10):
        weir.copy(ours, x)
        weir.fill(x, 1)
        _ = ours + x
    ours.device.synchronize()
    del _
    assert x.mistakes == ""


def test_what_is_no_array_is_refused_in_words() -> None:
    for wrong in (
        lambda: weir.fill([1, 2], 0),
        lambda: weir.copy("abc", weir.zeros(3)),
        lambda: weir.In(3),
        lambda: weir.host_task(lambda: None, reads=[1]),
    ):
        with pytest.raises(weir.ArgumentTypeError, match="DLPack"):
            wrong()


LENDERS: dict[str, Callable[[], Any]] = {
    "memoryview": lambda: memoryview(np.arange(3.0)),
    "array.array": lambda: array.array("d", [0, 1, 2]),
    "bytearray": lambda: bytearray(np.arange(3.0).tobytes()),
    "pyarrow": lambda: pytest.importorskip("pyarrow", exc_type=ImportError).array([0.0, 1.0, 2.0]),
    "nanoarrow": lambda: OnlyArrow(weir.arange(3.0)),
}


class OnlyArrow:
    """What has no protocol but Arrow's."""

    def __init__(self, of: weir.Array) -> None:
        self.of = of

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.of.__arrow_c_array__(requested_schema)


def leaves_operands(x: Any) -> bool:
    """Whether an operator of `x` leaves operands that it does not know to their own operators, as pyarrow's 26 does."""
    try:
        _ = x * object()
    except TypeError as why:
        return "unsupported operand" in str(why) or "can't multiply" in str(why)
    return True


@pytest.mark.parametrize("what", LENDERS)
def test_operands_are_whatever_asarray_shares(what: str) -> None:
    x = LENDERS[what]()
    wanted = weir.asarray(x)
    w = weir.ones(wanted.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (w + x).tolist() == (w + wanted).tolist()
        assert (x * w if leaves_operands(x) else w * x).tolist() == wanted.tolist()
        assert (w == x).tolist() == (w == wanted).tolist()
        assert weir.where(w, x, 0).tolist() == wanted.tolist()
        w -= x
        assert w.tolist() == (weir.ones(wanted.shape) - wanted).tolist()
        w[:] = x
        assert w.tolist() == wanted.tolist()
        weir.fill(w, x)
        assert w.tolist() == wanted.tolist()
        assert repr(weir.In(x)) == repr(weir.In(wanted))
        weir.host_task(lambda: None, reads=x, wait=True)
        if what != "bytearray":
            assert weir.array(weir.fft.fft(x)).tolist() == weir.fft.fft(wanted).tolist()


def test_fill_writes_memory_that_is_lent() -> None:
    of = array.array("d", [0, 1, 2])
    weir.fill(of, 7)
    weir.host_task(lambda: None, writes=of, wait=True)
    assert list(of) == [7, 7, 7]
    with pytest.raises(weir.ArgumentError, match="for reading only"):
        weir.fill(memoryview(b"abc"), 1)


def test_columns_of_bits_are_read_as_copies_and_not_written() -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    column = pa.array([True, False, True])
    assert (weir.zeros(3, "bool") | column).tolist() == [True, False, True]
    for use in (weir.In, weir.Out, lambda x: weir.fill(x, 0), weir.share, lambda x: weir.borrow(x).__enter__()):
        with pytest.raises(weir.CopyError, match=r"weir\.asarray\(x\)"):
            use(column)
    for use in (lambda x: weir.ones(3) + x, weir.In, weir.asarray, weir.array):
        with pytest.raises(weir.ExchangeError, match="null"):
            use(pa.array([1.0, None, 2.0]))
