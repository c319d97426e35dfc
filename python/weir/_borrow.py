"""What makes a stream current in other packages, for ``weir.borrow``; and ``weir.share``."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from weir._weir import Array, Stream, asarray
from weir._wrong_calls import explained


def _stream_of_cupy(cupy: Any, stream: Stream) -> Any:
    """The stream as one of CuPy's."""
    if hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 14 and later
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.handle, stream.device.id)


@functools.lru_cache(maxsize=64)
def _stream_of_torch(handle: int, device_id: int) -> Any:
    """The stream as one of torch's: a value that owns nothing, so that it fits a later stream with the same handle."""
    return sys.modules["torch"].cuda.ExternalStream(handle, device=device_id)


_torch_has_cuda = False


def _uses_cuda(torch: Any) -> bool:
    """Whether torch works on CUDA devices. It asks the driver at each call, and a yes stays one.

    While another thread imports torch, its parts are not there yet: nothing of it can be at work then.
    """
    global _torch_has_cuda
    is_available = getattr(getattr(torch, "cuda", None), "is_available", None)
    _torch_has_cuda = _torch_has_cuda or (callable(is_available) and is_available())
    return _torch_has_cuda


def _made_current(stream: Stream) -> contextlib.ExitStack:
    """Makes a CUDA stream the current one of torch and CuPy, as far as they are loaded, until the result is closed."""
    with contextlib.ExitStack() as stack:
        torch = sys.modules.get("torch")
        if torch is not None and _uses_cuda(torch):
            stack.enter_context(torch.cuda.stream(_stream_of_torch(stream.handle, stream.device.id)))
        cupy = sys.modules.get("cupy")
        if cupy is not None and hasattr(getattr(cupy, "cuda", None), "Stream"):
            stack.callback(_use_again, cupy.cuda.get_current_stream, cupy.cuda.get_current_stream())
            stack.enter_context(_stream_of_cupy(cupy, stream))
        return stack.pop_all()


def _use_again(current: Callable[[], Any], former: Any) -> None:
    """Makes the former stream of CuPy's current: the end of CuPy's own `with` forgets one that `use()` had named."""
    if current() != former:
        former.use()


@explained
def share(x: Any, /) -> Array:
    """The array as one that any consumer may take, whatever becomes of both sides meanwhile (rule X8).

    ``torch.from_dlpack(weir.share(cupy_array))``: the producer's memory is kept until the consumer has dropped it and
    everything is over that was in the device's context then. The consumer's work comes after what the producer's
    current stream held when the consumer took the array. What the two do with the elements after that is for the
    program to order, or for ``weir.borrow``. The same as ``weir.asarray``, of what can be shared without a copy: else
    CopyError.
    """
    return asarray(x, copy=False)
