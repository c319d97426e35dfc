"""The CUDA driver as another package uses it, beside Weir: by ctypes, on the fake driver and on a real one alike."""

from __future__ import annotations

import ctypes
import os
from typing import Any


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ.get("WEIR_CUDA_DRIVER", "libcuda.so.1"))


def is_fake() -> bool:
    """Whether the driver is the fake one. Raises OSError where there is none."""
    return hasattr(_library(), "weir_fake_calls")


class CudaDriver:
    """Streams and work that Weir did not make."""

    def __init__(self) -> None:
        self._library = _library()
        self._call("cuInit", 0)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), 0)

    def _call(self, name: str, *arguments: Any) -> None:
        if (status := getattr(self._library, name)(*arguments)) != 0:
            raise RuntimeError(f"{name} returned {status}")

    @property
    def is_fake(self) -> bool:
        return is_fake()

    def calls(self, name: str | None = None) -> int:
        """How often a function was called (of the fake)."""
        self._library.weir_fake_calls.restype = ctypes.c_ulonglong
        return int(self._library.weir_fake_calls(None if name is None else name.encode()))

    def own_calls(self, name: str | None = None) -> int:
        """How often the calling thread called a function, or all of them (of the fake)."""
        self._library.weir_fake_own_calls.restype = ctypes.c_ulonglong
        return int(self._library.weir_fake_own_calls(None if name is None else name.encode()))

    def hold(self, stream: int) -> int:
        """What enters the stream from now on does not run before `open` of what this gives (of the fake)."""
        self._library.weir_fake_hold.restype = ctypes.c_ulonglong
        return int(self._library.weir_fake_hold(ctypes.c_void_p(stream)))

    def open(self, held: int) -> None:
        self._library.weir_fake_open(ctypes.c_ulonglong(held))

    def loading_waits(self, whether: bool) -> None:
        """Whether loading code waits for everything that was enqueued before, as a driver may (of the fake)."""
        self._library.weir_fake_loading_waits(int(whether))

    def waiting_loads(self) -> int:
        """How many threads wait there (of the fake)."""
        self._library.weir_fake_waiting_loads.restype = ctypes.c_size_t
        return int(self._library.weir_fake_waiting_loads())

    def last_special_launch(self) -> list[int]:
        """A cluster's blocks along each axis, and whether it is cooperative, of the last such launch (of the fake)."""
        four = (ctypes.c_uint * 4)()
        self._library.weir_fake_last_special_launch(four)
        return list(four)

    def pending(self, stream: int) -> int:
        """What is in the stream and not done (of the fake)."""
        self._library.weir_fake_pending.restype = ctypes.c_size_t
        return int(self._library.weir_fake_pending(ctypes.c_void_p(stream)))

    def create_stream(self, *, blocking: bool = False) -> int:
        self._call("cuCtxSetCurrent", self._context)
        stream = ctypes.c_void_p()
        self._call("cuStreamCreateWithPriority", ctypes.byref(stream), 0 if blocking else 1, 0)
        assert stream.value is not None
        return stream.value

    def destroy_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy_v2", ctypes.c_void_p(stream))

    def allocate(self, size: int) -> int:
        """The address of that many bytes on the first device."""
        self._call("cuCtxSetCurrent", self._context)
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def fill(self, stream: int, address: int, value: float, count: int) -> None:
        """Enqueues a write of `count` floats."""
        self._call("cuCtxSetCurrent", self._context)
        bits = ctypes.c_uint32.from_buffer(ctypes.c_float(value))
        self._call("cuMemsetD32Async", ctypes.c_uint64(address), bits, ctypes.c_size_t(count), ctypes.c_void_p(stream))

    def read(self, stream: int, address: int, count: int) -> list[float]:
        """What the stream reads there, after what is in it. Waits for it."""
        self._call("cuCtxSetCurrent", self._context)
        elements = (ctypes.c_float * count)()
        size = ctypes.c_size_t(ctypes.sizeof(elements))
        self._call("cuMemcpyDtoHAsync_v2", elements, ctypes.c_uint64(address), size, ctypes.c_void_p(stream))
        self.synchronize(stream)
        return list(elements)

    def begin_capture(self, stream: int, mode: int = 0) -> None:
        """Captures what enters the stream from now on.

        Mode 0 refuses unsafe calls of all threads, 1 those of the calling thread, 2 none.
        """
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), mode)

    def end_capture(self, stream: int) -> bool:
        """Whether the capture has survived until now. It ends."""
        self._call("cuCtxSetCurrent", self._context)
        graph = ctypes.c_void_p()
        status = self._library.cuStreamEndCapture(ctypes.c_void_p(stream), ctypes.byref(graph))
        if graph.value is not None and hasattr(self._library, "cuGraphDestroy"):
            self._call("cuGraphDestroy", graph)
        return bool(status == 0)

    def wait_event(self, stream: int, event: int) -> None:
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuStreamWaitEvent", ctypes.c_void_p(stream), ctypes.c_void_p(event), 0)

    def record_event(self, stream: int) -> int:
        """A new event, recorded in the stream."""
        self._call("cuCtxSetCurrent", self._context)
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 2)
        self._call("cuEventRecord", event, ctypes.c_void_p(stream))
        assert event.value is not None
        return event.value

    def is_over(self, event: int) -> bool:
        self._call("cuCtxSetCurrent", self._context)
        status = self._library.cuEventQuery(ctypes.c_void_p(event))
        assert status in (0, 600), status
        return bool(status == 0)

    def is_idle(self, stream: int) -> bool:
        self._call("cuCtxSetCurrent", self._context)
        status = self._library.cuStreamQuery(ctypes.c_void_p(stream))
        assert status in (0, 600), status
        return bool(status == 0)

    def synchronize(self, stream: int) -> None:
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream))
