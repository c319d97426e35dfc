"""Gates: streams that wait until the host lets them go on, so that what races is certain to."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

# How long host code may wait behind a closed gate before the gate opens by itself: the code is then taken to block.
PATIENCE = 0.5


class Gate(Protocol):
    """Something that holds streams up until it is opened."""

    def hold(self, stream: Any) -> None:
        """What is put into the stream from now on starts after `open`."""

    def open(self) -> None: ...


class CudaGate:
    """Holds streams of the CUDA driver by a wait for a value in pinned memory: no thread of the host takes part."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        pointer = ctypes.c_void_p()
        # CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTALLOC_DEVICEMAP
        self._expect("cuMemHostAlloc", self._driver.cuMemHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(4), 1 | 2))
        self._word = ctypes.c_uint32.from_address(pointer.value or 0)
        self._word.value = 0
        on_device = ctypes.c_uint64()
        status = self._driver.cuMemHostGetDevicePointer_v2(ctypes.byref(on_device), pointer, 0)
        self._expect("cuMemHostGetDevicePointer", status)
        self._address = on_device

    def hold(self, stream: int) -> None:
        """`stream`: the handle."""
        # CU_STREAM_WAIT_VALUE_GEQ is 0
        wait = getattr(self._driver, "cuStreamWaitValue32_v2", None) or self._driver.cuStreamWaitValue32
        self._expect("cuStreamWaitValue32", wait(ctypes.c_void_p(stream), self._address, ctypes.c_uint32(1), 0))

    def open(self) -> None:
        self._word.value = 1

    @staticmethod
    def _expect(call: str, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"{call} failed with {status}")


class Watched:
    """A gate that opens by itself if the code of the `with` does not end, and knows whether it had to."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._ended = threading.Event()
        self.had_to_open = False

    def _watch(self) -> None:
        if not self._ended.wait(PATIENCE):
            self.had_to_open = True
            self._gate.open()


@contextmanager
def watched(gate: Gate) -> Iterator[Watched]:
    """Within the `with` the gate stays closed, for PATIENCE seconds at most; behind it the gate is open."""
    one = Watched(gate)
    thread = threading.Thread(target=one._watch, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one._ended.set()
        thread.join()
        gate.open()
