"""Exports and imports while other threads work, and by memory that several devices reach (X2, X3, X7, X9)."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from exchange_table import MANAGED, P, table_of, taken


@pytest.mark.parametrize("by", ["DLPack", "the exchange table"])
def test_x7_a_write_that_is_enqueued_during_an_export_is_over_when_its_call_returns(by: str) -> None:
    x, s = weir.zeros(1000), weir.Stream()
    table = table_of(weir.Array)
    begun = ended = pending = 0
    stop = threading.Event()
    runs = threading.Semaphore(0)

    def write(_x: Any) -> None:
        runs.acquire(timeout=0.001)  # long enough for the other thread to look

    def writer() -> None:
        nonlocal begun, ended
        while not stop.is_set():
            begun += 1
            weir.host_task(write, x, writes=[x], stream=s)
            ended += 1
            stop.wait(0.0002)  # the exports go on meanwhile

    thread = threading.Thread(target=writer)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        while ended < 500:
            if by == "DLPack":
                held: Any = np.from_dlpack(x)
            else:
                held = taken(table, x)
            returned, called = ended, begun
            # Each call so far has returned: so nothing is pending, as long as the consumer has the memory.
            if returned == called:
                is_pending = not x.ready
                pending += is_pending and begun == called
            if by != "DLPack":
                held.contents.deleter(held)
            del held
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert pending == 0


@pytest.mark.parametrize("device_type", [2, 13], ids=["cuda", "managed"])
def test_x9_managed_memory_comes_after_the_work_stream_as_well(cuda: weir.Device, device_type: int) -> None:
    of = weir.zeros(64, "float32", device=cuda, memory="managed")
    cuda.synchronize()
    table = table_of(weir.Array)
    made = taken(table, of)
    made.contents.tensor.device_type = device_type
    made.contents.tensor.shape = (ctypes.c_int64 * 1)(32)  # changed: it is no longer known as Weir's own
    work, other = weir.Stream(cuda), weir.Stream(cuda)
    got = P()
    with work:
        assert table.to_object(ctypes.cast(made, MANAGED), ctypes.byref(got)) == 0
    assert got.value is not None
    x = ctypes.cast(got, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(x))
    weir.fill(weir.zeros(64, device=cuda, stream=work), 1, stream=work)
    before = weir.stats()["waits_issued"]
    weir.fill(x, 2, stream=other)
    assert weir.stats()["waits_issued"] - before >= 1, "the write waits for the work stream"
    assert weir.explain(x).shared_with != []
    cuda.synchronize()


def test_x3_the_array_that_names_a_stream_does_not_live_as_long_as_the_stream(
    driver: CudaDriver, cuda: weir.Device
) -> None:
    of = weir.zeros(64, "float32", device=cuda)
    handle = driver.create_stream()
    stream = weir.adopt(handle, device=cuda)

    class Named:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {**of.__cuda_array_interface__, "stream": handle}

    named = Named()
    alive = weakref.ref(named)
    x = weir.asarray(named)
    del x, named
    for _ in range(100):
        weir.synchronize()
        gc.collect()
        if alive() is None:
            break
    assert alive() is None
    stream.synchronize()
