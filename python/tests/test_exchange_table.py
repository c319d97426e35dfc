"""DLPack's C exchange table (X1, X6, X7; scenario A18): that of Weir, those of others, tvm-ffi and torch."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from exchange_table import MANAGED, SET_ERROR, P, Producer, Table, Tensor, deleted, table_of, taken, work_stream
from host_waits import opened_when_the_host_waits
from weir.testing import Gate

OWN = table_of(weir.Array)


def test_a18_the_table_is_on_the_type_and_says_its_version() -> None:
    assert (OWN.major, OWN.minor, OWN.previous) == (1, 3, None)
    assert OWN.borrow is None, "the optional entry"
    assert not hasattr(weir.Array, "__c_dlpack_exchange_api__"), "the forerunner"


def test_a18_an_array_is_handed_over_and_kept_until_it_is_deleted() -> None:
    x = weir.arange(6.0).reshape(2, 3)
    managed = taken(OWN, x[:, 1:])
    t = managed.contents.tensor
    assert (t.ndim, t.shape[:2], t.strides[:2]) == (2, [2, 2], [3, 1])
    elements = ctypes.cast(t.data, ctypes.POINTER(ctypes.c_double))
    del x
    gc.collect()
    assert [elements[0], elements[1], elements[3]] == [1, 2, 4]
    deleted(managed)


def test_a18_on_the_cpu_an_array_is_handed_over_when_it_is_written() -> None:
    s = weir.Stream()
    x = weir.zeros(3, "float32", stream=s)
    gate = Gate()
    gate.hold(s)
    weir.fill(x, 7, stream=s)
    opens = opened_when_the_host_waits(x, gate)
    managed = taken(OWN, x)
    opens.join()
    assert ctypes.cast(managed.contents.tensor.data, ctypes.POINTER(ctypes.c_float))[2] == 7
    assert weir.explain(x).protocol == "DLPack C exchange table"
    assert weir.explain(x).went_out
    assert weir.explain(x).host_blocked
    deleted(managed)


def test_a18_what_is_no_array_is_refused_with_an_exception() -> None:
    made = MANAGED()
    with pytest.raises(weir.ArgumentTypeError, match=r"takes weir\.Array"):
        OWN.from_object([1, 2], ctypes.byref(made))
    assert not made


def test_a18_the_work_stream_of_the_cpu_is_null() -> None:
    assert work_stream(OWN, 1) is None
    with pytest.raises(weir.ExchangeError, match="type 99"):
        work_stream(OWN, 99)


def test_a18_own_tensors_come_back_as_the_same_memory() -> None:
    x = weir.arange(3.0)
    out = P()
    assert OWN.to_object(taken(OWN, x), ctypes.byref(out)) == 0
    again = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(again))
    assert isinstance(again, weir.Array)
    weir.fill(x, 1)
    assert again.tolist() == [1, 1, 1]
    assert np.shares_memory(np.from_dlpack(again), np.from_dlpack(x))


def test_a18_a_tensor_of_others_is_taken_and_deleted_once() -> None:
    of = Producer()
    managed = taken(of.table, of.cls())
    out = P()
    assert OWN.to_object(managed, ctypes.byref(out)) == 0
    x = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(x))
    assert x.tolist() == [0, 1, 2, 3]
    assert of.deleted == 0
    del x
    eventually(lambda: of.deleted == 1)


def test_a18_a_new_tensor_is_like_the_prototype() -> None:
    shape = (ctypes.c_int64 * 2)(2, 3)
    prototype = Tensor()
    prototype.device_type, prototype.ndim, prototype.code, prototype.bits, prototype.lanes = 1, 2, 2, 64, 1
    prototype.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    said: list[tuple[bytes, bytes]] = []
    set_error = SET_ERROR(lambda _context, kind, message: said.append((kind, message)))
    made = MANAGED()
    assert OWN.allocate(ctypes.byref(prototype), ctypes.byref(made), None, set_error) == 0
    t = made.contents.tensor
    assert (t.ndim, t.shape[:2], t.bits) == (2, [2, 3], 64)
    deleted(made)
    assert not said
    for change, says in [("device_type", "type 99"), ("code", "99")]:
        bad = Tensor.from_buffer_copy(prototype)
        setattr(bad, change, 99)
        assert OWN.allocate(ctypes.byref(bad), ctypes.byref(made), None, set_error) == -1
        kind, message = said.pop()
        assert kind in (b"BufferError", b"ValueError")
        assert says in message.decode()


def allocated_like(on: tuple[int, int], count: int = 4) -> tuple[Any, str]:
    """A new tensor of that device, or null, and what the table says."""
    shape = (ctypes.c_int64 * 1)(count)
    prototype = Tensor()
    (prototype.device_type, prototype.device_id), prototype.ndim = on, 1
    prototype.code, prototype.bits, prototype.lanes = 2, 32, 1
    prototype.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    said: list[str] = []
    set_error = SET_ERROR(lambda _context, _kind, message: said.append(message.decode()))
    made = MANAGED()
    assert OWN.allocate(ctypes.byref(prototype), ctypes.byref(made), None, set_error) == (-1 if said else 0)
    return made, "".join(said)


@pytest.mark.parametrize("count", [4, 0])
@pytest.mark.parametrize("on", [(1, 0), (2, 0), (3, 0), (12, 0), (13, 0)])
def test_a18_a_new_tensor_is_memory_of_the_prototypes_device(
    driver: CudaDriver, cuda: weir.Device, on: tuple[int, int], count: int
) -> None:
    made, said = allocated_like(on, count)
    assert said == ""
    t = made.contents.tensor
    assert (t.device_type, t.device_id) == on
    out = P()
    assert OWN.to_object(made, ctypes.byref(out)) == 0
    x = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(x))
    assert x.shape == (count,)
    if count != 0:
        devices = {1: {"cpu"}, 2: {"cuda:0"}, 3: {"cpu", "cuda:0"}, 12: {"sim:0"}, 13: {"cpu", "cuda:0"}}[on[0]]
        assert devices <= {one.name for one in x.devices}, "the memory itself, and not its name alone"


@pytest.mark.parametrize("on", [(1, 1), (3, 1), (99, 0)])
def test_a18_memory_that_weir_has_not_is_not_allocated(
    driver: CudaDriver, cuda: weir.Device, on: tuple[int, int]
) -> None:
    made, said = allocated_like(on)
    assert not made
    assert f"type {on[0]} with the number {on[1]}" in said


def test_a18_weir_takes_arrays_by_another_table() -> None:
    of = Producer()
    x = weir.asarray(of.cls())
    assert (of.exported, weir.explain(x).protocol) == (1, "DLPack C exchange table")
    x += 1
    assert list(of.elements) == [1, 2, 3, 4], "over when the call returns: on the CPU the producer may look at any time"
    del x
    eventually(lambda: of.deleted == 1)


def test_a18_what_the_table_refuses_the_method_says_in_words() -> None:
    of = Producer()
    of.fails = True
    with pytest.raises(BufferError, match="the method says why"):
        weir.asarray(of.cls())


def test_a18_a_table_that_weir_does_not_read_is_walked_to_one_that_it_does() -> None:
    old = Producer()
    new = Table()
    new.major, new.minor, new.previous = 2, 0, ctypes.addressof(old.table)
    capsule = ctypes.pythonapi.PyCapsule_New(ctypes.byref(new), b"dlpack_exchange_api", None)
    cls = type("Newer", (old.cls,), {"__dlpack_c_exchange_api__": capsule})
    assert weir.asarray(cls()).tolist() == [0, 1, 2, 3]
    new.previous = None
    with pytest.raises(BufferError, match="the method says why"):
        weir.asarray(cls())


def test_a18_an_integer_is_no_table() -> None:
    of = Producer()
    forerunner = type("Forerunner", (of.cls,), {"__dlpack_c_exchange_api__": ctypes.addressof(of.table)})
    with pytest.raises(BufferError, match="the method says why"):
        weir.asarray(forerunner())
    assert of.exported == 0


def test_x1_what_a_table_says_is_read_only_cannot_be_written() -> None:
    of = Producer()
    of.flags = 1
    with pytest.raises(weir.ArgumentError, match="for reading only"):
        weir.fill(weir.asarray(of.cls()), 1)


def test_a18_a_class_with_the_table_alone_is_taken_everywhere() -> None:
    of = Producer(methods=False)
    x = of.cls()
    assert weir.asarray(x).tolist() == [0, 1, 2, 3]
    assert weir.from_dlpack(x).tolist() == [0, 1, 2, 3]
    assert (weir.ones(4, "float32") + x).tolist() == [1, 2, 3, 4]
    with weir.borrow(x, write=[x]) as (view,):
        assert weir.explain(view).protocol == "DLPack C exchange table"
        weir.fill(view, 7)
    assert list(of.elements) == [7, 7, 7, 7], "over at the end of the block"
    assert weir.fft.rfft(x).tolist() == [28, 0, 0]
    eventually(lambda: of.deleted == of.exported)
    of.fails = True
    with pytest.raises(weir.ExchangeError, match="refuses to hand it over"):
        weir.asarray(x)


@pytest.mark.parametrize("name", ["tvm_ffi", "torch"])
def test_x6_real_packages_hand_over(name: str) -> None:
    try:
        module: Any = importlib.import_module(name)
    except ImportError as missing:
        pytest.skip(f"{name} is not installed ({missing}): ./run test --interop installs it")
    t = module.from_dlpack(weir.arange(4.0))
    x = weir.asarray(t)
    x += 1
    assert np.from_dlpack(t).tolist() == [1, 2, 3, 4]
    if hasattr(type(t), "__dlpack_c_exchange_api__"):
        assert weir.explain(x).protocol == "DLPack C exchange table"


def test_x7_a_function_of_tvm_takes_and_gives_arrays_of_weir() -> None:
    tvm_ffi: Any = pytest.importorskip("tvm_ffi")
    x = weir.arange(3.0)
    given = tvm_ffi.get_global_func("testing.echo")(x)
    assert isinstance(given, weir.Array)
    weir.fill(x, 5)
    assert given.tolist() == [5, 5, 5], "the same memory"


@pytest.mark.parametrize("kind", ["grad", "conj", "neg"])
def test_x1_tensors_of_torch_that_its_table_would_hand_over_wrongly_are_refused_or_copied(kind: str) -> None:
    torch: Any = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j])
    of = {"grad": torch.ones(3, requires_grad=True), "conj": z.conj(), "neg": z.conj().imag}[kind]
    with pytest.raises(BufferError):
        weir.asarray(of)


# On CUDA, by what reaches the driver.


def expect_wait_of_a_write(x: weir.Array, driver: CudaDriver, behind: int) -> None:
    """A write to `x` on a stream of its own comes after what is in the stream `behind`."""
    held = driver.hold(behind)
    s = weir.Stream(x.device)
    weir.fill(x, 2, stream=s)
    third = weir.Stream(x.device)
    weir.fill(weir.empty(4, "float32", stream=third), 1, stream=third)
    third.synchronize()
    waits = not s.done
    driver.open(held)
    s.synchronize()
    assert waits


def expect_no_wait_of_a_write(x: weir.Array, driver: CudaDriver, beside: int) -> None:
    """A write to `x` on a stream of its own ends while the stream `beside` is held."""
    held = driver.hold(beside)
    s = weir.Stream(x.device)
    weir.fill(x, 2, stream=s)
    s.synchronize()
    driver.open(held)


def test_a18_the_work_stream_follows_nested_contexts_and_threads(driver: CudaDriver) -> None:
    # In a process of its own: outside of all contexts the answer is the handle of the default stream, which is then
    # shared for good.
    program = """
        import threading
        import weir
        from exchange_table import table_of, work_stream

        own = table_of(weir.Array)
        s, t = weir.Stream("cuda:0"), weir.Stream("cuda:0")
        default = work_stream(own, 2)
        assert default == weir.current_stream("cuda:0").handle
        seen = []
        with s:
            assert work_stream(own, 2) == s.handle
            with t:
                assert work_stream(own, 2) == t.handle
                thread = threading.Thread(target=lambda: seen.append(work_stream(own, 2)))
                thread.start()
                thread.join()
            assert work_stream(own, 2) == s.handle
        assert seen == [default]
        assert work_stream(own, 2) == default
    """
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120, cwd=here)


def test_a18_the_work_stream_waits_and_no_entry_synchronises(driver: CudaDriver, x: weir.Array) -> None:
    work, writer = weir.Stream(x.device), weir.Stream(x.device)
    held = driver.hold(writer.handle)
    weir.fill(x, 1, stream=writer)
    names = ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"]
    before = [driver.own_calls(name) for name in names]
    with work:
        assert work_stream(OWN, 2) == work.handle
        managed = taken(OWN, x)
    assert [driver.own_calls(name) for name in names] == before
    assert driver.pending(work.handle) > 0, "it waits for the write"
    driver.open(held)
    writer.synchronize()
    deleted(managed)


def test_a18_what_weir_writes_later_comes_after_the_work_stream(driver: CudaDriver, x: weir.Array) -> None:
    work = weir.Stream(x.device)
    handle = work.handle
    assert handle is not None
    expect_no_wait_of_a_write(x, driver, handle)
    with work:
        managed = taken(OWN, x)
    expect_wait_of_a_write(x, driver, handle)
    other = weir.Stream(x.device)
    with other:
        assert work_stream(OWN, 2) == other.handle
    expect_wait_of_a_write(x, driver, other.handle)
    deleted(managed)


def test_x6_an_array_by_a_table_comes_after_the_producers_work_stream(driver: CudaDriver, x: weir.Array) -> None:
    of = Producer(64, pointer=x.__cuda_array_interface__["data"][0], device_type=2)
    of.stream = driver.create_stream()
    imported = weir.asarray(of.cls())
    assert of.asked, "the table is asked for the stream"
    expect_wait_of_a_write(imported, driver, of.stream)
    with weir.ordering("manual"):
        expect_no_wait_of_a_write(imported, driver, of.stream)


def test_x6_a_borrow_of_an_array_by_its_table_comes_after_the_producers_work_stream(
    driver: CudaDriver, x: weir.Array
) -> None:
    of = Producer(64, pointer=x.__cuda_array_interface__["data"][0], device_type=2, methods=False)
    of.stream = driver.create_stream()
    theirs = of.cls()
    s = weir.Stream(x.device)
    assert s.handle is not None
    held = driver.hold(of.stream)
    try:
        with weir.borrow(theirs, write=[theirs], stream=s):
            assert not driver.is_idle(s.handle), "the stream that is lent waits for the producer's"
    finally:
        driver.open(held)
    s.synchronize()
    held = driver.hold(s.handle)
    try:
        with weir.borrow(theirs, write=[theirs], stream=s):
            pass
        assert not driver.is_idle(of.stream), "the producer's stream waits for the work in the block"
    finally:
        driver.open(held)
    driver.synchronize(of.stream)
