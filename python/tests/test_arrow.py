"""Arrow's C data interfaces (X4, X5; scenarios A8, A10): pyarrow, nanoarrow, and what reaches the CUDA driver."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from host_waits import comes_to_wait, opened_when_the_host_waits
from weir.testing import Gate

pa: Any = pytest.importorskip("pyarrow")


NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_x4_pyarrow_and_weir_share_memory_both_ways(dtype: str) -> None:
    column = pa.array([1, 2, 3, 4], type=getattr(pa, dtype)())
    x = weir.asarray(column)
    assert (str(x.dtype), x.tolist()) == (dtype, [1, 2, 3, 4])
    assert np.from_dlpack(x).__array_interface__["data"][0] == column.buffers()[1].address
    y = weir.arange(4, dtype=dtype)
    out = pa.array(y)
    assert (out.type, out.to_pylist()) == (getattr(pa, dtype)(), [0, 1, 2, 3])
    assert out.buffers()[1].address == y.numpy().__array_interface__["data"][0]


def test_x4_float16_goes_through() -> None:
    assert weir.asarray(pa.array([1.5], type=pa.float16())).tolist() == [1.5]
    assert pa.array(weir.ones(2, "float16")).type == pa.float16()


@pytest.mark.parametrize("part", [slice(2, 5), slice(0, 0), slice(7, 8)])
def test_x4_slices_on_both_sides(part: slice) -> None:
    assert weir.asarray(pa.array(range(8))[part]).tolist() == list(range(8))[part]
    assert pa.array(weir.arange(8)[part]).to_pylist() == list(range(8))[part]


def test_x4_a_slice_without_the_nulls_of_its_column_is_taken() -> None:
    column = pa.array([None, 1, 2, 3])
    assert weir.asarray(column[1:]).tolist() == [1, 2, 3]
    with pytest.raises(weir.ExchangeError, match=r"has 1 nulls.*fill_null"):
        weir.asarray(column)


@pytest.mark.parametrize("part", [slice(0, 11), slice(3, 10), slice(8, 9)])
def test_x4_bits_are_copied_into_bytes(part: slice) -> None:
    values = [True, False, True, True, False, False, True, False, True, True, False]
    x = weir.asarray(pa.array(values)[part])
    assert (str(x.dtype), x.tolist()) == ("bool", values[part])
    assert weir.explain(x).copied
    with pytest.raises(weir.CopyError, match="copy=False"):
        weir.asarray(pa.array(values), copy=False)


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (lambda: pa.array(["a", "b"]), "texts"),
        (lambda: pa.array([b"a"]), "binary"),
        (lambda: pa.array([[1], [2]]), "nested"),
        (lambda: pa.array([{"a": 1}]), "nested"),
        (lambda: pa.record_batch({"a": [1]}), "nested"),
        (lambda: pa.array(["a", "a"]).dictionary_encode(), "dictionary_decode"),
        (lambda: pa.array([1], type=pa.timestamp("s")), "dates or times"),
        (lambda: pa.nulls(2), "nulls alone"),
    ],
)
def test_x4_what_is_no_column_of_numbers_is_refused_in_words(column: Any, says: str) -> None:
    with pytest.raises(weir.ExchangeError, match=says):
        weir.asarray(column())


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (lambda: weir.zeros((2, 2)), r"reshape\(\(-1,\)\)"),
        (lambda: weir.zeros(()), "one dimension"),
        (lambda: weir.zeros((2, 2)), r"export x\.reshape\(\(-1,\)\)"),
        (lambda: weir.zeros(8)[::2], r"x\.copy\(\)"),
        (lambda: weir.zeros(2, "bool"), "uint8"),
        (lambda: weir.zeros(2, "complex64"), "complex64"),
    ],
)
def test_x4_what_arrow_has_not_says_what_to_do(array: Any, says: str) -> None:
    with pytest.raises(weir.ExchangeError, match=says):
        array().__arrow_c_device_array__()
    with pytest.raises(weir.ExchangeError, match=says):
        array().__arrow_c_array__()


def test_x4_keywords_that_weir_does_not_know() -> None:
    x = weir.zeros(2)
    x.__arrow_c_device_array__(None, later=None)
    with pytest.raises(NotImplementedError, match="has no later"):
        x.__arrow_c_device_array__(later=1)


def test_a10_arrow_columns_are_never_written() -> None:
    column = pa.array([1, 2])
    with pytest.raises(weir.ArgumentError, match="memory of pyarrow, which shares it for reading only"):
        weir.fill(weir.asarray(column), 0)
    assert column.to_pylist() == [1, 2]


def test_a10_memory_of_weirs_that_comes_back_is_ordered_with_the_original() -> None:
    w = weir.arange(6, dtype="float64")
    column = pa.array(w)
    back = weir.asarray(column[1:4])
    s, gate = weir.Stream(), Gate()
    gate.hold(s)
    with s:
        read = back + 0
    writing = threading.Thread(target=lambda: weir.fill(w, 9))  # blocks, since pyarrow has the column
    writing.start()
    assert comes_to_wait(writing)  # for the read, which was enqueued before
    gate.open()
    writing.join()
    assert read.tolist() == [1, 2, 3]
    assert back.tolist() == [9, 9, 9]


def test_a10_what_weir_writes_while_pyarrow_has_the_memory_is_over_when_the_call_returns() -> None:
    x = weir.zeros(4)
    out = pa.array(x)
    weir.fill(x, 3)
    assert out.to_pylist() == [3, 3, 3, 3]


def test_a10_two_buffers_with_one_address_are_both_known() -> None:
    of = np.arange(1000.0)
    all_of_it, part = weir.asarray(of), weir.asarray(of[:10])
    column = pa.array(all_of_it)
    shorter = pa.array(part)
    weir.fill(weir.asarray(column), 1)  # memory of Weir's: pyarrow's own could not be written
    assert (of == 1).all()
    weir.fill(weir.asarray(shorter), 2)
    assert (of == [2] * 10 + [1] * 990).all()
    del column
    gc.collect()
    weir.fill(weir.asarray(shorter), 3)
    assert (of == [3] * 10 + [1] * 990).all()


def test_x4_an_export_holds_what_was_written_before() -> None:
    s = weir.Stream()
    x = weir.zeros(3, stream=s)
    gate = Gate()
    gate.hold(s)
    weir.fill(x, 7, stream=s)
    opens = opened_when_the_host_waits(x, gate)
    out = pa.array(x)
    opens.join()
    assert out.to_pylist() == [7, 7, 7]
    said = weir.explain(x)
    assert (said.protocol, said.went_out, said.host_blocked) == ("Arrow C device data interface", True, True)


def test_l4_each_side_keeps_the_others_memory() -> None:
    x = weir.asarray(pa.array([1.0, 2.0]))
    out = pa.array(weir.full(2, 5.0))
    gc.collect()
    others = [weir.zeros(2) for _ in range(10)]
    assert (x.tolist(), out.to_pylist()) == ([1, 2], [5, 5])
    del others


def test_l4_pyarrow_gets_its_memory_back() -> None:
    before = pa.total_allocated_bytes()
    x = weir.asarray(pa.array(range(100_000)))
    assert pa.total_allocated_bytes() > before
    del x
    eventually(lambda: pa.total_allocated_bytes() == before)


def test_l4_capsules_that_no_consumer_takes_are_released() -> None:
    of = np.zeros(4)
    gone = weakref.ref(of)
    x = weir.asarray(of)
    both = [x.__arrow_c_device_array__(), x.__arrow_c_array__()]
    del of, x
    gc.collect()
    assert gone() is not None, "control: the capsules keep it"
    del both
    eventually(lambda: gone() is None)


def test_x4_nanoarrow_both_ways() -> None:
    na: Any = pytest.importorskip("nanoarrow")
    x = weir.asarray(na.Array([1, 2, 3], na.int16()))
    assert (str(x.dtype), x.tolist()) == ("int16", [1, 2, 3])
    assert weir.explain(x).protocol == "Arrow C data interface"
    assert na.Array(weir.arange(3.0)).to_pylist() == [0, 1, 2]
    device: Any = pytest.importorskip("nanoarrow.device")
    column = device.c_device_array(weir.arange(4))
    assert (column.device_type_id, column.device_id) == (1, -1)
    assert weir.asarray(column).tolist() == [0, 1, 2, 3]


def test_x4_the_plain_interface_is_the_cpus() -> None:
    x = weir.zeros(2, device="sim:0")
    with pytest.raises(weir.ExchangeError, match="is not on the CPU"):
        x.__arrow_c_array__()


class OfCapsules:
    """A producer that gives what it was given."""

    def __init__(self, both: object) -> None:
        self.both = both

    def __arrow_c_device_array__(self, requested_schema: object = None, **_: object) -> object:
        return self.both


@pytest.mark.parametrize("both", [None, (1,), (1, 2), ("arrow_schema", "arrow_device_array")])
def test_b10_producers_that_give_no_capsules(both: object) -> None:
    with pytest.raises(weir.ExchangeError):
        weir.asarray(OfCapsules(both))


def test_b10_a_column_is_taken_once() -> None:
    of = OfCapsules(weir.arange(3).__arrow_c_device_array__())
    assert weir.asarray(of).tolist() == [0, 1, 2]
    with pytest.raises(weir.ExchangeError, match="was released"):
        weir.asarray(of)


# On CUDA, by what reaches the driver.


def event_of(capsule: object) -> int | None:
    """The event that an arrow_device_array names."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    where = ctypes.c_void_p.from_address(pointer(capsule, b"arrow_device_array") + 96).value
    return None if where is None else ctypes.c_void_p.from_address(where).value


def test_a8_the_event_is_over_when_pending_writes_are(driver: CudaDriver, cuda: weir.Device) -> None:
    x = weir.zeros(64, "float32", device=cuda)
    cuda.synchronize()
    assert event_of(x.__arrow_c_device_array__()[1]) is None, "nothing is pending"
    s = weir.Stream(cuda)
    held = driver.hold(s.handle)
    weir.fill(x, 1, stream=s)
    both = x.__arrow_c_device_array__()
    event = event_of(both[1])
    assert event is not None
    assert not driver.is_over(event)
    driver.open(held)
    eventually(lambda: driver.is_over(event))


def test_a8_round_trip_of_an_array_that_is_being_written(driver: CudaDriver, cuda: weir.Device) -> None:
    x = weir.zeros(64, "float32", device=cuda)
    s = weir.Stream(cuda)
    held = driver.hold(s.handle)
    weir.fill(x, 1, stream=s)
    y = weir.asarray(OfCapsules(x.__arrow_c_device_array__()))
    assert not y.ready, "the import comes after the event, and nothing has blocked"
    driver.open(held)
    s.synchronize()
    eventually(lambda: y.ready)
