"""Arrays of packages on a GPU, with their package's work on one stream, for tests of the exchange."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import weir
from cuda_packages import N, cupy, torch


class Held(NamedTuple):
    """An array of zeros of a package, and its work on one stream."""

    array: Any  # what Weir is given
    handle: int  # the stream's
    add: Callable[[float], None]  # enqueues `array += value` there
    keeps: object = None  # what has to live as long


def of_torch() -> Held:
    s = torch.cuda.Stream()
    t = torch.zeros(N, device="cuda")
    torch.cuda.set_stream(s)  # until the end of the test

    def add(value: float) -> None:
        t.add_(value)

    return Held(t, s.cuda_stream, add, s)


def of_cuda_core() -> Held:
    """A view of cuda.core's, of a tensor of torch's, by torch's stream. The work is torch's."""
    utils = pytest.importorskip("cuda.core.utils", reason="cuda.core is not installed")
    made = of_torch()
    view = utils.StridedMemoryView.from_dlpack(made.array, stream_ptr=made.handle)
    return made._replace(array=view, keeps=(made.array, made.keeps))


def of_cupy() -> Held:
    s = cupy.cuda.Stream(non_blocking=True)
    c = cupy.zeros(N, dtype=cupy.float32)
    s.use()  # until the end of the test

    def add(value: float) -> None:
        cupy.add(c, cupy.float32(value), out=c)

    return Held(c, s.ptr, add, s)


@functools.cache
def numbas_kernel() -> Any:
    cuda = importlib.import_module("numba.cuda")

    @cuda.jit  # type: ignore[untyped-decorator]
    def add_to(x: Any, value: Any) -> None:
        i = cuda.grid(1)
        if i < x.shape[0]:
            x[i] += value

    return add_to


def numba() -> Any:
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    try:
        importlib.import_module("numba.cuda.cudaimpl")
    except AttributeError as why:
        pytest.skip(f"this version of numba-cuda does not work with this NumPy: {why}")
    return cuda


def of_numba() -> Held:
    """A device array that was made on a stream, which its interface names."""
    cuda, numpy = numba(), importlib.import_module("numpy")
    s = cuda.external_stream(torch.cuda.Stream().cuda_stream)  # torch's streams live as long as the process
    d = cuda.to_device(numpy.zeros(N, numpy.float32), stream=s)
    s.synchronize()
    handle = int(getattr(s.handle, "value", s.handle))
    assert d.__cuda_array_interface__["stream"] == handle

    def add(value: float) -> None:
        numbas_kernel()[N // 256, 256, s](d, numpy.float32(value))

    return Held(d, handle, add, s)


def of_numba_by_default() -> Held:
    """A device array whose interface names no stream: Numba works on the legacy default stream then."""
    cuda, numpy = numba(), importlib.import_module("numpy")
    d = cuda.to_device(numpy.zeros(N, numpy.float32))
    cuda.synchronize()
    assert d.__cuda_array_interface__.get("stream") is None

    def add(value: float) -> None:
        numbas_kernel()[N // 256, 256](d, numpy.float32(value))

    return Held(d, 1, add)


def of_weir() -> Held:
    """Weir's own, on a stream of Weir's."""
    s = weir.Stream("cuda:0")
    x = weir.zeros(N, "float32", device="cuda:0")

    def add(value: float) -> None:
        with s:
            weir.copy(x, x + value)

    return Held(x, s.handle, add, s)


MAKERS = {
    "torch": of_torch,
    "cupy": of_cupy,
    "numba": of_numba,
    "numba by default": of_numba_by_default,
    "cuda.core": of_cuda_core,
}


def torchs_stream(handle: int) -> Any:
    return torch.cuda.default_stream() if handle == 1 else torch.cuda.ExternalStream(handle)


def ends(x: weir.Array) -> list[float]:
    found: list[float] = x.numpy()[[0, N - 1]].tolist()
    return found
