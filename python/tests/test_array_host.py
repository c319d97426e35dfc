"""What the host sees of arrays, and what it waits for (rules O6, X7)."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir
from interrupting import interrupt
from numpy_versions import IS_NUMPY_2
from weir.testing import Gate

WAIT = 60  # seconds: only a test that fails waits so long


class Call:
    """A call on another thread, of which one can ask whether it is over."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._result: list[Any] = []
        self._error: list[BaseException] = []
        self._began = threading.Event()

        def run() -> None:
            self._began.set()
            try:
                self._result.append(function(*arguments))
            except BaseException as error:
                self._error.append(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert self._began.wait(WAIT)

    @property
    def is_over(self) -> bool:
        return bool(self._result or self._error)

    def result(self) -> Any:
        self._thread.join(WAIT)
        assert not self._thread.is_alive(), "the call still waits"
        if self._error:
            raise self._error[0]
        return self._result[0]


def test_numpy_waits_for_exactly_the_write(queue_device: str) -> None:
    """O6: not for the reading stream, not for the writing stream's later work, not for other elements."""
    writer, other = weir.Stream(queue_device), weir.Stream(queue_device)
    x = weir.zeros(4, stream=writer)
    y = weir.zeros(4, stream=other)
    writer.synchronize()
    other.synchronize()
    with Gate() as before, Gate() as after, Gate() as elsewhere:
        elsewhere.hold(other)
        weir.fill(y, 1, stream=other)  # another stream's held work, on other memory
        before.hold(writer)
        weir.fill(x[:2], 7, stream=writer)
        after.hold(writer)
        weir.fill(x[2:], 8, stream=writer)  # later work of the same stream, on other elements
        assert not x.ready
        call = Call(x[:2].numpy)
        # Negative control: the write is held, so that a read without a wait would see zeros.
        assert not call.is_over
        before.open()
        assert call.result().tolist() == [7, 7]
        assert not x[2:].ready
        assert not y.ready
        after.open()
        assert x.numpy().tolist() == [7, 7, 8, 8]
        assert not y.ready
    assert y.numpy().tolist() == [1, 1, 1, 1]


def test_a_copy_waits_for_writes_alone(queue_device: str) -> None:
    """Readers do not wait for a held reader: item(), tolist(), float(), numpy(copy=True)."""
    reader = weir.Stream(queue_device)
    x = weir.arange(3, device=queue_device)
    with Gate() as gate:
        gate.hold(reader)
        with reader:
            held = x + 1  # reads x
        assert x.tolist() == [0, 1, 2]
        assert x[2].item() == 2
        assert float(x[1]) == 1.0
        assert x.numpy(copy=True).tolist() == [0, 1, 2]
        assert not held.ready
    assert held.tolist() == [1, 2, 3]


def test_a_view_waits_for_reads_too() -> None:
    """X7: the owner of a view may write, so that readers conflict."""
    reader = weir.Stream()
    x = weir.arange(3)
    x.numpy()
    with Gate() as gate:
        gate.hold(reader)
        with reader:
            held = x + 1
        call = Call(x.numpy)
        bytes_of = Call(hash_of, x)  # asks for bytes, not to write them: waits for nothing
        bytes_of.result()
        assert not call.is_over
        gate.open()
        view = call.result()
        view[:] = 9
    assert held.tolist() == [1, 2, 3]
    assert x.tolist() == [9, 9, 9]


def hash_of(x: weir.Array) -> str:
    import hashlib

    return hashlib.sha256(x).hexdigest()


def test_conflicting_calls_return_when_they_are_over_while_a_view_lives() -> None:
    """X7, with the negative control: without a view the same call returns at once."""
    s = weir.Stream()
    x = weir.zeros(3, stream=s)
    view = x.numpy()

    def add_on_stream() -> None:
        with s:
            x[...] += 1

    with Gate() as gate:
        gate.hold(s)
        call = Call(add_on_stream)
        assert not call.is_over
        assert view.tolist() == [0, 0, 0]
        gate.open()
        call.result()
    assert view.tolist() == [1, 1, 1]
    del view
    gc.collect()
    with Gate() as gate:
        gate.hold(s)
        add_on_stream()  # returns, though it is held
        assert not x.ready
    assert x.tolist() == [2, 2, 2]


def test_a_view_that_may_be_written_hinders_readers_too() -> None:
    s = weir.Stream()
    x = weir.ones(3, stream=s)
    view = x.numpy()

    def read() -> weir.Array:
        with s:
            return x + 1

    with Gate() as gate:
        gate.hold(s)
        call = Call(read)
        assert not call.is_over
        gate.open()
        y = call.result()
    view[:] = 7  # the reader is over, and has not seen it
    assert y.tolist() == [2, 2, 2]


def test_a_view_of_other_elements_hinders_nobody() -> None:
    s = weir.Stream()
    x = weir.zeros((4, 4), stream=s)
    view = x[:, 1].numpy()
    with Gate() as gate:
        gate.hold(s)
        with s:
            x[:, 2] += 1
        assert not x[:, 2].ready
    assert view.tolist() == [0] * 4
    assert x[:, 2].tolist() == [1] * 4


def test_changes_go_both_ways_through_a_view() -> None:
    x = weir.zeros((2, 3), "float32")
    view = x.numpy()
    view[0] = 5
    assert (x + 0).tolist() == [[5, 5, 5], [0, 0, 0]]
    x += 1
    assert view.tolist() == [[6, 6, 6], [1, 1, 1]]
    assert view.base is not None
    assert np.shares_memory(view, x[1].numpy()) is True


def test_a_view_keeps_the_memory() -> None:
    view = weir.full(1000, 7).numpy()
    gc.collect()
    others = [weir.zeros(1000) for _ in range(10)]
    assert view.tolist() == [7] * 1000
    assert len(others) == 10


@pytest.mark.parametrize("copy", [True, False, None])
def test_numpy_copies_where_it_must(copy: bool | None, array_device: str) -> None:
    x = weir.arange(4, device=array_device)[::-2]
    is_far = array_device.startswith(("sim", "cuda"))
    if is_far and copy is False:
        for call in (x.numpy, x.__array__):
            with pytest.raises(weir.CopyError, match="copy=False") as raised:
                call(copy=False)
            assert isinstance(raised.value, ValueError)
            assert isinstance(raised.value, BufferError)
        if IS_NUMPY_2:
            with pytest.raises(ValueError, match="copy"):
                np.array(x, copy=False)
        return
    by_numpy = [np.array(x, copy=copy)] if IS_NUMPY_2 or copy is not None else []  # 1.26 takes no None
    for got in (x.numpy(copy=copy), x.__array__(copy=copy), *by_numpy):
        assert got.tolist() == [3, 1]
        got[0] = 8
        is_copy = copy is True or is_far
        assert x.tolist() == ([3, 1] if is_copy else [8, 1])
        x[0] = 3
        del got
    assert np.asarray(x, "float32").tolist() == [3, 1]
    assert np.asarray(x, "float32").dtype == "float32"
    with pytest.raises(ValueError, match="copy"):
        x.__array__("float32", copy=False)


@pytest.mark.parametrize("name", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_memoryview_of_integers(name: str) -> None:
    x = weir.array([[1, 0, 1], [0, 1, 0]], name)
    with memoryview(x.T) as view:
        assert view.shape == (3, 2)
        assert view.tolist() == x.T.tolist()
        view[0, 1] = 1
        assert not view.readonly
    assert x[1, 0].item() == 1


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_memory_of_other_types(name: str) -> None:
    x = weir.array([[1, 2], [3, 4]], name)
    view = np.asarray(memoryview(x[:, ::-1]))
    assert view.dtype == x.dtype
    assert view.tolist() == [[2, 1], [4, 3]]


def test_memory_as_it_is_asked_for() -> None:
    x = weir.arange(6).reshape(2, 3)
    assert bytes(x) == x.numpy().tobytes()
    assert (ctypes.c_int64 * 6).from_buffer(x)[4] == 4
    assert bytes(weir.array([3], device="sim:0")) == np.array([3]).tobytes()  # not three zeros, as of an integer
    with pytest.raises(BufferError, match="order"):
        hash_of(x.T)
    scalar = memoryview(weir.array(3.5))
    assert scalar.shape == ()
    assert scalar[()] == 3.5
    scalar.release()
    empty = memoryview(weir.zeros((0, 2)))
    assert empty.tolist() == []
    with pytest.raises(weir.ExchangeError, match=r"x\.numpy\(\)"):
        memoryview(weir.zeros(2, device="sim:0"))
    with pytest.raises(weir.ExchangeError, match="ml_dtypes"):
        memoryview(weir.zeros(2, "bfloat16"))


def test_read_only_memory_is_viewed_read_only() -> None:
    of = np.arange(6.0).reshape(2, 3)
    of.flags.writeable = False
    x = weir.asarray(of)
    for view in (x.numpy(), x.numpy(copy=False), np.asarray(x), np.asarray(memoryview(x)), x[:, 1:].numpy()):
        assert not view.flags.writeable
        assert np.shares_memory(view, of)
    with memoryview(x) as memory:
        assert memory.readonly
        assert memory.tolist() == of.tolist()
    with pytest.raises(TypeError, match="not writable"):
        (ctypes.c_double * 6).from_buffer(x)
    copy = x.numpy(copy=True)
    copy[:] = 0
    assert of[0, 1] == 1


def test_a_read_only_view_hinders_no_readers() -> None:
    x, s = weir.asarray(memoryview(b"abcd")), weir.Stream()
    y = weir.zeros(4, "uint8")
    weir.synchronize()
    view = x.numpy()
    with Gate() as gate:
        gate.hold(s)
        reading = threading.Thread(target=weir.copy, args=(y, x), kwargs={"stream": s}, daemon=True)
        reading.start()
        gate.open()
    reading.join()
    assert y.tolist() == view.tolist()


def test_bfloat16_is_viewed_as_ml_dtypes_has_it() -> None:
    x = weir.array([1, 2], "bfloat16")
    for view in (x.numpy(), np.asarray(x)):
        assert view.dtype == ml_dtypes.bfloat16
        view[0] += 1
    assert x.tolist() == [3, 2]


def test_what_failed_is_not_shown(array_device: str) -> None:
    """K4: integers to the power of a negative number fail the operation."""
    x = weir.array([2, 3], device=array_device)
    y = x ** weir.array([1, -1], device=array_device)
    for call in (y.numpy, y.tolist, y[0].item, lambda: np.asarray(y)):
        with pytest.raises(weir.OperationError, match="power") as raised:
            call()
        assert raised.value.file == __file__
    y[...] = 1
    assert y.tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["numpy", "tolist", "float", "memoryview", "copy to NumPy"])
def test_interrupting_a_wait(kind: str) -> None:
    """Ctrl-C ends a wait for elements; nothing is lost."""
    s = weir.Stream()
    x = weir.zeros(2, stream=s)

    def wait() -> None:
        if kind == "copy to NumPy":
            weir.copy(np.zeros(2), x)
        elif kind == "float":
            float(x[0])
        else:
            memoryview(x) if kind == "memoryview" else getattr(x, kind)()

    with Gate() as gate:
        gate.hold(s)
        weir.fill(x, 3, stream=s)
        interrupt(wait)
        assert not x.ready
    assert x.tolist() == [3, 3]


def test_buffers_leave_no_references() -> None:
    x = weir.zeros(3)
    before = sys.getrefcount(x)
    for _ in range(100):
        with memoryview(x):
            pass
        x.numpy()
        np.asarray(x)
        with pytest.raises(BufferError):
            hash_of(x[::2])
    gc.collect()
    assert sys.getrefcount(x) == before
