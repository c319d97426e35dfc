"""What makes a stream current in other packages, for ``weir.borrow``; and ``weir.share``."""

from __future__ import annotations

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


class _Switched:
    """What was current in the packages before, until `close` makes it current again."""

    __slots__ = ("_undo",)

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def torchs(self, cuda: Any, stream: Stream) -> None:
        """What `torch.cuda.stream` does, which takes three times as long."""
        former = cuda.current_stream()
        device_id = stream.device.id
        if former.device_index != device_id:  # the device becomes the current one as well, and has a stream of its own
            self._undo.append(functools.partial(cuda.set_stream, former))
            former = cuda.current_stream(device_id)
        self._undo.append(functools.partial(cuda.set_stream, former))
        cuda.set_stream(_stream_of_torch(stream.handle, device_id))

    def cupys(self, cupy: Any, stream: Stream) -> None:
        current = cupy.cuda.get_current_stream
        lent, former = _stream_of_cupy(cupy, stream), current()
        lent.__enter__()
        self._undo.append(functools.partial(_use_again, current, former))
        self._undo.append(functools.partial(lent.__exit__, None, None, None))

    def close(self) -> None:
        """Makes all of it current again, whatever of that fails; the first failure is raised."""
        failed: BaseException | None = None
        while self._undo:
            try:
                self._undo.pop()()
            except BaseException as error:
                failed = failed or error
        if failed is not None:
            raise failed


def _made_current(stream: Stream) -> _Switched:
    """Makes a CUDA stream the current one of torch and CuPy, as far as they are loaded, until the result is closed."""
    switched = _Switched()
    try:
        torch = sys.modules.get("torch")
        if torch is not None and _uses_cuda(torch):
            switched.torchs(torch.cuda, stream)
        cupy = sys.modules.get("cupy")
        if cupy is not None and hasattr(getattr(cupy, "cuda", None), "Stream"):
            switched.cupys(cupy, stream)
    except BaseException:
        switched.close()
        raise
    return switched


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
