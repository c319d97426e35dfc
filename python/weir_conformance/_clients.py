"""The libraries that can be tested: what each calls its arrays, streams and the functions of the protocols."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from weir_conformance._gate import CudaGate, Gate

COUNT = 1 << 18  # elements of the arrays of the cases about time: 1 MiB


class NotOffered(Exception):
    """The library has no such thing."""


class Client:
    """A library. Arrays hold 32-bit floating-point numbers in one dimension.

    To test another library, derive a class from this one and name it as MODULE:CLASS. The base class is a library whose
    calls on the CPU are complete when they return. Methods raise NotOffered where the library has no such thing.
    """

    name: ClassVar[str]
    module: ClassVar[str]
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    # Whether calls return before their work is complete.
    asynchronous: ClassVar[tuple[str, ...]] = ()
    mutable: ClassVar[bool] = True

    def __init__(self, device: str) -> None:
        self.device = device
        self.library: Any = importlib.import_module(self.module)

    @classmethod
    def is_installed(cls) -> bool:
        try:
            return importlib.util.find_spec(cls.module) is not None
        except ModuleNotFoundError:
            return False

    def has_device(self) -> bool:
        return self.device in self.devices

    # --- arrays ---------------------------------------------------------------------------------------------------

    def full(self, count: int, value: float) -> Any:
        """A new array, enqueued on the current stream."""
        raise NotImplementedError

    def fill(self, x: Any, value: float) -> None:
        """Writes all elements, on the current stream."""
        x[:] = value

    def plus(self, x: Any, value: float) -> Any:
        """A new array, on the current stream."""
        return x + value

    def values(self, x: Any) -> list[float]:
        """The elements. Blocks until the work of the library on them is complete."""
        return [float(each) for each in x.tolist()]

    def read_only(self, count: int, value: float) -> Any:
        """An array that the library refuses to write to."""
        raise NotOffered

    def is_writable(self, x: Any) -> bool:
        """Whether the library would write to it."""
        return self.mutable

    # --- protocols ------------------------------------------------------------------------------------------------

    def from_dlpack(self, x: Any) -> Any:
        return self.library.from_dlpack(x)

    def from_cai(self, x: Any) -> Any:
        """From the CUDA Array Interface."""
        raise NotOffered

    # --- streams --------------------------------------------------------------------------------------------------

    def stream(self) -> Any:
        """A new stream that waits for no other by itself, or None where the library has none."""
        return None

    def current(self, stream: Any) -> AbstractContextManager[Any]:
        """Makes the stream the library's current one."""
        return contextlib.nullcontext() if stream is None else stream

    def handle(self, stream: Any) -> Any:
        """What a gate holds."""
        raise NotOffered

    def gate(self) -> Gate:
        return CudaGate()

    def synchronize(self) -> None:
        """Blocks until all work of the library is complete."""


class NumPy(Client):
    name = module = "numpy"

    def full(self, count: int, value: float) -> Any:
        return self.library.full(count, value, "float32")

    def read_only(self, count: int, value: float) -> Any:
        made = self.full(count, value)
        made.flags.writeable = False
        return made

    def is_writable(self, x: Any) -> bool:
        return bool(x.flags.writeable)


class ArrayApiStrict(Client):
    name, module = "array-api-strict", "array_api_strict"

    def full(self, count: int, value: float) -> Any:
        return self.library.full((count,), value, dtype=self.library.float32)

    def values(self, x: Any) -> list[float]:
        return [float(x[i]) for i in range(x.shape[0])] if x.shape[0] < 4096 else [float(each) for each in x._array]

    def is_writable(self, x: Any) -> bool:
        return bool(x._array.flags.writeable)


class Torch(Client):
    name = module = "torch"
    devices = ("cpu", "cuda")
    asynchronous = ("cuda",)

    def has_device(self) -> bool:
        return self.device == "cpu" or bool(self.library.cuda.is_available())

    def full(self, count: int, value: float) -> Any:
        return self.library.full((count,), value, dtype=self.library.float32, device=self.device)

    def fill(self, x: Any, value: float) -> None:
        x.fill_(value)

    def from_cai(self, x: Any) -> Any:
        return self.library.as_tensor(x, device="cuda")

    def stream(self) -> Any:
        return self.library.cuda.Stream() if self.device == "cuda" else None

    def current(self, stream: Any) -> AbstractContextManager[Any]:
        return contextlib.nullcontext() if stream is None else self.library.cuda.stream(stream)

    def handle(self, stream: Any) -> Any:
        return stream.cuda_stream

    def synchronize(self) -> None:
        if self.device == "cuda":
            self.library.cuda.synchronize()


class CuPy(Client):
    name = module = "cupy"
    devices = asynchronous = ("cuda",)

    def full(self, count: int, value: float) -> Any:
        return self.library.full(count, value, "float32")

    def fill(self, x: Any, value: float) -> None:
        x.fill(value)

    def from_cai(self, x: Any) -> Any:
        return self.library.asarray(x)

    def stream(self) -> Any:
        return self.library.cuda.Stream(non_blocking=True)

    def handle(self, stream: Any) -> Any:
        return stream.ptr

    def synchronize(self) -> None:
        self.library.cuda.Device().synchronize()


class Jax(Client):
    """Its arrays cannot be changed, and it has no streams that a program can name."""

    name = module = "jax"
    devices = ("cpu", "cuda")
    mutable = False

    def has_device(self) -> bool:
        try:
            return bool(self.library.devices(self.device))
        except RuntimeError:
            return False

    def full(self, count: int, value: float) -> Any:
        with self.library.default_device(self.library.devices(self.device)[0]):
            return self.library.numpy.full(count, value, "float32")

    def fill(self, x: Any, value: float) -> None:
        raise NotOffered

    def read_only(self, count: int, value: float) -> Any:
        return self.full(count, value)

    def from_dlpack(self, x: Any) -> Any:
        return self.library.dlpack.from_dlpack(x)

    def synchronize(self) -> None:
        self.library.effects_barrier()


class Mlx(Client):
    name, module = "mlx", "mlx.core"

    def full(self, count: int, value: float) -> Any:
        made = self.library.full((count,), value, dtype=self.library.float32)
        self.library.eval(made)
        return made

    def from_dlpack(self, x: Any) -> Any:
        return self.library.array(x)  # it has no from_dlpack; this takes arrays that speak the protocol, and copies

    def fill(self, x: Any, value: float) -> None:
        x[:] = value
        self.library.eval(x)


class PyArrow(Client):
    name, module = "pyarrow", "pyarrow"
    mutable = False

    def full(self, count: int, value: float) -> Any:
        return self.library.array([value] * count, type=self.library.float32())

    def fill(self, x: Any, value: float) -> None:
        raise NotOffered

    def plus(self, x: Any, value: float) -> Any:
        raise NotOffered

    def values(self, x: Any) -> list[float]:
        return [float(each) for each in x.to_pylist()]

    def read_only(self, count: int, value: float) -> Any:
        return self.full(count, value)

    def from_dlpack(self, x: Any) -> Any:
        raise NotOffered


class TvmFfi(Client):
    """It has tensors and no arithmetic."""

    name, module = "tvm-ffi", "tvm_ffi"

    def full(self, count: int, value: float) -> Any:
        raise NotOffered

    def plus(self, x: Any, value: float) -> Any:
        raise NotOffered

    def values(self, x: Any) -> list[float]:
        from weir_conformance._dlpack import Taken

        taken = Taken(x.__dlpack__())
        try:
            return taken.floats()
        finally:
            taken.close()


class Dpnp(Client):
    name = module = "dpnp"

    def full(self, count: int, value: float) -> Any:
        return self.library.full(count, value, dtype="float32", device="cpu")

    def synchronize(self) -> None:
        import dpctl  # type: ignore[import-not-found, unused-ignore]

        dpctl.SyclQueue("cpu").wait()


class TensorFlow(Client):
    name = module = "tensorflow"
    mutable = False

    def full(self, count: int, value: float) -> Any:
        return self.library.fill([count], self.library.constant(value, self.library.float32))

    def fill(self, x: Any, value: float) -> None:
        raise NotOffered

    def values(self, x: Any) -> list[float]:
        return [float(each) for each in x.numpy()]

    def from_dlpack(self, x: Any) -> Any:
        return self.library.experimental.dlpack.from_dlpack(x.__dlpack__())


class Paddle(Client):
    name = module = "paddle"

    def full(self, count: int, value: float) -> Any:
        return self.library.full([count], value, dtype="float32")

    def from_dlpack(self, x: Any) -> Any:
        return self.library.utils.dlpack.from_dlpack(x)


class Warp(Client):
    name = module = "warp"

    def has_device(self) -> bool:
        self.library.config.quiet = True
        self.library.init()  # by itself only before it makes an array, and not before it takes one
        return super().has_device()

    def full(self, count: int, value: float) -> Any:
        return self.library.full(count, value, dtype=float, device="cpu")

    def fill(self, x: Any, value: float) -> None:
        x.fill_(value)

    def plus(self, x: Any, value: float) -> Any:
        raise NotOffered

    def values(self, x: Any) -> list[float]:
        return [float(each) for each in x.numpy()]


class Numba(Client):
    """Device arrays of numba.cuda, which speak the CUDA Array Interface alone."""

    name, module = "numba", "numba.cuda"
    devices = asynchronous = ("cuda",)

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self._stream: Any = 0

    def has_device(self) -> bool:
        return self.device == "cuda" and bool(self.library.is_available())

    def _launch(self, kernel: Callable[..., Any], count: int, *arguments: Any) -> None:
        kernel[(count + 255) // 256, 256, self._stream](*arguments)  # type: ignore[index]

    def full(self, count: int, value: float) -> Any:
        made = self.library.device_array(count, "float32", stream=self._stream)
        self.fill(made, value)
        return made

    def fill(self, x: Any, value: float) -> None:
        cuda = self.library

        @cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
        def fill(x: Any, value: float) -> None:
            i = cuda.grid(1)
            if i < x.size:
                x[i] = value

        self._launch(fill, x.size, x, value)

    def plus(self, x: Any, value: float) -> Any:
        cuda = self.library
        made = cuda.device_array(x.size, "float32", stream=self._stream)

        @cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
        def plus(x: Any, value: float, y: Any) -> None:
            i = cuda.grid(1)
            if i < x.size:
                y[i] = x[i] + value

        self._launch(plus, x.size, x, value, made)
        return made

    def values(self, x: Any) -> list[float]:
        self.library.synchronize()
        return [float(each) for each in x.copy_to_host()]

    def from_dlpack(self, x: Any) -> Any:
        raise NotOffered

    def from_cai(self, x: Any) -> Any:
        return self.library.as_cuda_array(x)

    def stream(self) -> Any:
        return self.library.stream()

    @contextlib.contextmanager
    def current(self, stream: Any) -> Any:
        before, self._stream = self._stream, stream
        try:
            yield
        finally:
            self._stream = before

    def handle(self, stream: Any) -> Any:
        return int(stream.handle.value)

    def synchronize(self) -> None:
        self.library.synchronize()


class Weir(Client):
    name = module = "weir"
    devices = asynchronous = ("cpu", "cuda")

    def has_device(self) -> bool:
        return self.device == "cpu" or bool(self.library.devices(self.device))

    def _on_device(self) -> Any:
        return self.library.Device("cpu" if self.device == "cpu" else "cuda:0")

    def full(self, count: int, value: float) -> Any:
        return self.library.full(count, value, "float32", device=self._on_device())

    def fill(self, x: Any, value: float) -> None:
        self.library.fill(x, value)

    def from_cai(self, x: Any) -> Any:
        return self.library.asarray(x)

    def stream(self) -> Any:
        return self.library.Stream(self._on_device())

    def handle(self, stream: Any) -> Any:
        return stream if self.device == "cpu" else stream.handle

    def gate(self) -> Gate:
        return self.library.testing.Gate() if self.device == "cpu" else CudaGate()

    def synchronize(self) -> None:
        self.library.synchronize()


CLIENTS: dict[str, type[Client]] = {
    each.name: each
    for each in (
        NumPy, ArrayApiStrict, Torch, CuPy, Jax, Mlx, PyArrow, TvmFfi, Dpnp, TensorFlow, Paddle, Warp, Numba, Weir,
    )
}  # fmt: skip


class Unknown(ValueError):
    """A library, a device or a case that the suite does not know, or a library that is not installed."""


def client_named(name: str) -> type[Client]:
    """The library of that name, or the class that "MODULE:CLASS" names. Raises Unknown."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise Unknown(f"there is no {attribute} in the module {module}: {error}") from error
        if not (isinstance(found, type) and issubclass(found, Client)):
            raise Unknown(f"{name} is not derived from weir_conformance.Client")
        return found
    if name not in CLIENTS:
        raise Unknown(f"there is no library {name!r} in the suite: there are {', '.join(CLIENTS)}, and MODULE:CLASS")
    return CLIENTS[name]
