"""The CUDA driver as another package uses it, beside Weir: by ctypes, on the fake driver and on a real one alike."""

from __future__ import annotations

import ctypes
import os
from typing import Any


class CudaDriver:
    """Streams and work that Weir did not make."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("WEIR_CUDA_DRIVER", "libcuda.so.1"))
        self._call("cuInit", 0)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), 0)

    def _call(self, name: str, *arguments: Any) -> None:
        if (status := getattr(self._library, name)(*arguments)) != 0:
            raise RuntimeError(f"{name} returned {status}")

    @property
    def is_fake(self) -> bool:
        return hasattr(self._library, "weir_fake_calls")

    def calls(self, name: str | None = None) -> int:
        """How often a function was called (of the fake)."""
        self._library.weir_fake_calls.restype = ctypes.c_ulonglong
        return int(self._library.weir_fake_calls(None if name is None else name.encode()))

    def hold(self, stream: int) -> int:
        """What enters the stream from now on does not run before `open` of what this gives (of the fake)."""
        self._library.weir_fake_hold.restype = ctypes.c_ulonglong
        return int(self._library.weir_fake_hold(ctypes.c_void_p(stream)))

    def open(self, held: int) -> None:
        self._library.weir_fake_open(ctypes.c_ulonglong(held))

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

    def wait_event(self, stream: int, event: int) -> None:
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuStreamWaitEvent", ctypes.c_void_p(stream), ctypes.c_void_p(event), 0)

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
