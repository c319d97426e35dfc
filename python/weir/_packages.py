"""The streams that other packages in the process use now. Weir imports no package: it asks those that are loaded."""

from __future__ import annotations

import sys
from typing import Any

from weir._weir import ArgumentTypeError, Array, Event, Kernel, Stream, _stream_of_interface, adopt, current_stream
from weir._wrong_calls import explained

# The class of each package's arrays. Objects of classes that a program derives from it are arrays of the package, too.
_ARRAYS = {
    "torch": "torch.Tensor",
    "cupy": "cupy.ndarray",
    "jax": "jax.Array",
    "numba": "numba.cuda.cudadrv.devicearray.DeviceNDArrayBase",
}

# What makes an array of a package from one of Weir, of packages where it is not called from_dlpack.
_TAKING = {"jax": "jax.dlpack.from_dlpack", "mlx": "mlx.core.array", "numba": "numba.cuda.as_cuda_array"}


def _found(path: str) -> Any:
    """What a dotted name stands for, of what the program has loaded; None if it has not."""
    first, *rest = path.split(".")
    found: Any = sys.modules.get(first)
    for part in rest:
        found = getattr(found, part, None)
    return found


def package_name_of(x: Any) -> str:
    """The package that `x` is an array of. Of other objects: the first part of the name of their class's module."""
    for name, path in _ARRAYS.items():
        found = _found(path)
        if isinstance(found, type) and isinstance(x, found):
            return name
    module = type(x).__module__
    return module.partition(".")[0] if isinstance(module, str) else "an unknown package"


@explained
def stream_of(x: Any, /) -> Stream:
    """The stream that `x`'s package works on now, in this thread.

    Takes arrays of Weir, torch, CuPy and classes derived from theirs, and what else has a ``__cuda_array_interface__``
    that names its stream.

    It may be another one at the next call. Raises ArgumentTypeError for objects whose package has no streams, as NumPy.
    """
    if isinstance(x, (Array, Event, Kernel, Stream)):
        return current_stream(x)
    package = package_name_of(x)
    if package == "torch" and getattr(x, "is_cuda", False):
        return adopt(sys.modules["torch"].cuda.current_stream(x.device), device=f"cuda:{x.device.index}")
    if package == "cupy":
        return adopt(sys.modules["cupy"].cuda.get_current_stream(), device=f"cuda:{x.device.id}")
    if not isinstance(x, type) and hasattr(x, "__cuda_array_interface__"):  # of a class it is a property
        return _stream_of_interface(x)
    raise ArgumentTypeError(
        f"a {type(x).__module__}.{type(x).__qualname__} has no stream: pass an array of Weir, torch or CuPy on a "
        "device with streams; what NumPy and torch on the CPU do is over when their calls return"
    )


def dtype_name_of(x: object) -> str | None:
    """The name of an element type of torch or JAX; None for any other object."""
    if type(x).__module__ == "torch" and type(x).__name__ == "dtype":
        return str(x).removeprefix("torch.")
    numpy_dtype = _found("numpy.dtype")
    its = getattr(x, "dtype", None)  # jax.numpy.float32 is no type of NumPy, and has this
    if type(x).__module__.partition(".")[0] == "jax" and isinstance(numpy_dtype, type) and isinstance(its, numpy_dtype):
        return str(its)
    return None


def device_name_of(x: object) -> str | None:
    """The name, as Weir has it, of a device of torch or CuPy; None for any other object."""
    kind, module = type(x).__name__, type(x).__module__.partition(".")[0]
    if kind != "Device" and kind != "device":
        return None
    if module == "torch":
        if str(x) == "cuda":
            return f"cuda:{sys.modules['torch'].cuda.current_device()}"
        return str(x).replace("cpu:0", "cpu")
    if module == "cupy":
        return f"cuda:{getattr(x, 'id', 0)}"
    return None


def current_stream_of_package(name: str, device_id: int) -> Stream | None:
    """The stream that the package `name` works on now on a CUDA device, in this thread; None if it says of none."""
    module = sys.modules.get(name)
    if name == "torch" and module is not None:
        return adopt(module.cuda.current_stream(device_id), device=f"cuda:{device_id}")
    if name == "cupy" and module is not None:
        return adopt(module.cuda.get_current_stream(), device=f"cuda:{device_id}")
    if name == "numba" and "numba.cuda" in sys.modules:
        return adopt(1, device=f"cuda:{device_id}")  # it takes streams in launches alone; its default is this one
    return None


def handed_back(result: Array, operand: Any) -> Any:
    """The result of a call in the package of its operand (rule P2): that package takes it as it takes any array.

    So the work is ordered with the stream that the package works on now. A package that takes none gets an array of
    Weir.
    """
    name = package_name_of(operand)
    takes = _found(_TAKING.get(name, f"{name}.from_dlpack"))
    if takes is None and hasattr(operand, "__array_namespace__"):
        takes = getattr(operand.__array_namespace__(), "from_dlpack", None)
    return takes(result) if callable(takes) else result


def names_with_streams() -> list[str]:
    """The loaded packages that work on streams of CUDA devices and say on which."""
    found = [name for name in ("cupy", "numba") if f"{name}.cuda" in sys.modules]
    initialized = _found("torch.cuda.is_initialized")  # not yet there while another thread imports torch
    if callable(initialized) and initialized():
        found.append("torch")
    return found
