"""Launchers of other packages on a GPU: how each adds an array to another."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import weir
from cuda_packages import N, cupy, torch


@functools.cache
def raw_kernel() -> Any:
    return cupy.RawKernel(
        """extern "C" __global__ void add(const float* x, float* y, int n) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] += x[i];
        }""",
        "add",
    )


class Launcher(NamedTuple):
    """How another package adds x to y: it makes views of Weir's arrays, and launches on them."""

    view: Callable[[weir.Array], object]
    add: Callable[[object, object], None]
    by_interface: Callable[[weir.Array], object]  # the view by the CUDA Array Interface

    def __call__(self, x: weir.Array, y: weir.Array) -> None:
        self.add(self.view(x), self.view(y))


def by_weir() -> Launcher:
    """An operator of Weir's, on Weir's current stream."""

    def add(x: object, y: object) -> None:
        assert isinstance(x, weir.Array)
        assert isinstance(y, weir.Array)
        weir.copy(y, x + y)

    def itself(x: weir.Array) -> object:
        return x

    return Launcher(itself, add, itself)


def by_cupy() -> Launcher:
    """A RawKernel, on CuPy's current stream. By DLPack: `cupy.asarray` makes the host wait for the array's stream."""

    def add(x: object, y: object) -> None:
        raw_kernel()((N // 256,), (256,), (x, y, cupy.int32(N)))

    return Launcher(cupy.from_dlpack, add, cupy.asarray)


def tensor_by_interface(x: weir.Array) -> object:
    return torch.as_tensor(x, device="cuda")


def by_torch() -> Launcher:
    """An operator, on torch's current stream."""
    return Launcher(torch.from_dlpack, lambda x, y: torch.Tensor.add_(y, x), tensor_by_interface)


def by_numba() -> Launcher:
    """A kernel of Numba's on the borrow's stream, which it is given."""
    cuda = importlib.import_module("numba.cuda")

    @cuda.jit  # type: ignore[untyped-decorator]
    def kernel(x: Any, y: Any) -> None:
        i = cuda.grid(1)
        if i < x.shape[0]:
            y[i] += x[i]

    def add(x: object, y: object) -> None:
        stream = cuda.external_stream(weir.current_stream("cuda:0").handle)
        kernel[N // 256, 256, stream](x, y)

    view = functools.partial(cuda.as_cuda_array, sync=False)
    return Launcher(view, add, view)


TRITON_SOURCE = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
"""


def by_triton(folder: Path) -> Launcher:
    """In a file of its own: Triton reads the source of its kernels."""
    file = folder / "kernel_for_triton.py"
    file.write_text(TRITON_SOURCE)
    spec = importlib.util.spec_from_file_location("kernel_for_triton", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Launcher(torch.from_dlpack, lambda x, y: module.add[(N // 1024,)](x, y, N, BLOCK=1024), tensor_by_interface)
