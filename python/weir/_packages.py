"""What other packages in the process work on now. Weir imports none: it looks at what the program has loaded."""

from __future__ import annotations

import sys
from typing import Any

from weir._weir import ArgumentTypeError, Stream, adopt, current_stream


def stream_of(x: Any, /) -> Stream:
    """The stream that `x`'s package works on now, in this thread: arrays of Weir, torch, CuPy, and what else has a
    ``__cuda_array_interface__`` that names its stream.

    It may be another one at the next call. Raises ArgumentTypeError for objects whose package has no streams, as NumPy.
    """
    package = type(x).__module__.partition(".")[0]
    if package == "weir" and hasattr(x, "device"):
        return current_stream(x)
    if package == "torch" and getattr(x, "is_cuda", False):
        return adopt(sys.modules["torch"].cuda.current_stream(x.device), device=f"cuda:{x.device.index}")
    if package == "cupy":
        return adopt(sys.modules["cupy"].cuda.get_current_stream(), device=f"cuda:{x.device.id}")
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        stream = interface.get("stream")
        if stream is not None:
            return adopt(stream, owner=x)
        raise ArgumentTypeError(
            f"the __cuda_array_interface__ of this {type(x).__name__} names no stream: "
            "pass the stream that its package works on"
        )
    raise ArgumentTypeError(
        f"a {type(x).__module__}.{type(x).__qualname__} has no stream: pass an array of Weir, torch or CuPy on a "
        "device with streams; what NumPy and torch on the CPU do is over when their calls return"
    )
