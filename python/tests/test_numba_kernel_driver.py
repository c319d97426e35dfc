"""Kernels of Python bodies on the fake CUDA driver, where CUDA C++ stands for what Numba compiles: grids, order."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from weir.testing import Gate

pytest.importorskip("numba", reason="Numba is not installed: pip install numba")

N = 1000
PARAMETERS = "long long n0, long long n1, long long n2, long long l0, long long l1, long long l2"

AXPY = f"""
extern "C" __global__ void body({PARAMETERS}, double a, const float* x, long long nx, long long sx, float* y,
                                long long ny, long long sy) {{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n0 * n1 * n2) {{
        float* to = (float*)((char*)y + i * sy);
        *to = float(a * *(const float*)((const char*)x + i * sx)) + *to;
    }}
}}
"""

GRID = f"""
extern "C" __global__ void body({PARAMETERS}, int* y, long long ny, long long sy) {{
    if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0) {{
        int values[12] = {{(int)gridDim.z, (int)gridDim.y, (int)gridDim.x, (int)blockDim.z, (int)blockDim.y,
                          (int)blockDim.x, (int)n0, (int)n1, (int)n2, (int)l0, (int)l1, (int)l2}};
        for (int k = 0; k < 12; ++k) {{ y[k] = values[k]; }}
    }}
}}
"""


def fake_ptx(source: str) -> bytes:
    """What the fake NVRTC makes of the source, as PTX."""
    nvrtc = ctypes.CDLL(os.environ["WEIR_NVRTC_LIBRARY"])
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_90")
    calls = [
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), None, 0, None, None),
        nvrtc.nvrtcCompileProgram(program, 1, options),
        nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)),
    ]
    text = ctypes.create_string_buffer(size.value)
    assert [*calls, nvrtc.nvrtcGetPTX(program, text)] == [0] * 4
    return text.raw


@pytest.fixture
def compiled(driver: CudaDriver, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has this source stand for whatever Numba would compile."""
    from weir import _numba

    def use(source: str) -> None:
        ptx = fake_ptx(source)
        monkeypatch.setattr(_numba, "compile_ptx", lambda *arguments: (ptx, "body"))

    return use


def axpy_kernel() -> Any:
    @weir.kernel
    def axpy(i: int, a: float, x: Any, y: Any) -> None:
        y[i] = a * x[i] + y[i]

    return axpy


def ones(n: int = N) -> weir.Array:
    return weir.ones(n, "float32", device="cuda:0")


def test_k2_a_launch_passes_numbers_and_arrays(compiled: Any) -> None:
    compiled(AXPY)
    axpy = axpy_kernel()
    x, y = weir.arange(2.0 * N, dtype="float32", device="cuda:0"), ones()
    event = axpy[weir.Range(N)](2.5, x[::2], y)
    assert isinstance(event, weir.Event)
    event.wait()
    np.testing.assert_array_equal(y.numpy(), 2.5 * np.arange(0, 2 * N, 2, dtype="float32") + 1)
    axpy[weir.Range(0)](2.5, x[::2], y)  # no index
    axpy[weir.Range(10, 10)](1.0, x[:100], y[:100])
    assert y.numpy()[[0, 99, 100]].tolist() == [1, 595, 501]


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o1_a_launch_comes_after_what_writes_its_operands(compiled: Any, mode: str) -> None:
    """The control, left to its own order, reads before the write that is held."""
    compiled(AXPY)
    axpy = axpy_kernel()
    first, second = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    x, y = ones(), ones()
    axpy[weir.Range(N), second].prepare(2.0, x, y)
    weir.Device("cuda:0").synchronize()
    with Gate() as gate, weir.ordering(mode):
        gate.hold(first)
        weir.fill(x, 7, stream=first)
        after = axpy[weir.Range(N), second](2.0, x, y)
        if mode == "manual":
            after.wait()
        else:
            assert not after.done
    weir.Device("cuda:0").synchronize()
    assert y.numpy().tolist() == [15.0 if mode == "auto" else 3.0] * N


def test_o1_what_is_only_read_is_not_ordered(compiled: Any) -> None:
    compiled(AXPY)
    axpy = axpy_kernel()
    first, second = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    x, y, z = ones(), ones(), ones()
    axpy[weir.Range(N), second].prepare(2.0, x, y)
    weir.Device("cuda:0").synchronize()
    with Gate() as gate:
        gate.hold(first)
        held = axpy[weir.Range(N), first](2.0, x, y)
        axpy[weir.Range(N), second](2.0, x, z).wait()
        assert not held.done
    held.wait()


@pytest.mark.parametrize(
    ("space", "grid", "block"),
    [
        (weir.Range(1000), (1, 1, 4), (1, 1, 256)),
        (weir.Range(256), (1, 1, 1), (1, 1, 256)),
        (weir.Range(10, 100), (1, 1, 4), (1, 1, 256)),
        (weir.NdRange(1024, 64), (1, 1, 16), (1, 1, 64)),
        (weir.NdRange((6, 64), (2, 32)), (1, 3, 2), (1, 2, 32)),
        (weir.NdRange((4, 6, 64), (1, 2, 32)), (4, 3, 2), (1, 2, 32)),
    ],
)
def test_groups_are_blocks_whose_x_is_the_last_dimension(compiled: Any, space: Any, grid: Any, block: Any) -> None:
    compiled(GRID)

    @weir.kernel
    def sees(item: Any, y: Any) -> None:
        y[0] = 1

    y = weir.zeros(12, "int32", device="cuda:0")
    sees[space](y)
    extents = [*space.extents, 1, 1][:3]
    local = [*getattr(space, "local", (1,)), 1, 1][:3]
    assert y.numpy().tolist() == [*grid, *block, *extents, *local]


def test_each_device_has_code_of_its_own(compiled: Any) -> None:
    compiled(AXPY)
    axpy = axpy_kernel()
    for device in ("cuda:0", "cpu", "sim:0"):
        x, y = weir.ones(N, "float32", device=device), weir.ones(N, "float32", device=device)
        axpy[weir.Range(N)](3.0, x, y)
        assert y.numpy().tolist() == [4.0] * N
    assert len(axpy._its.compiled) == 2  # the simulated device runs the code of the CPU


def test_uses_are_found_around_barriers(compiled: Any) -> None:
    compiled(GRID)
    cuda = pytest.importorskip("numba.cuda")

    @weir.kernel
    def waits(item: Any, y: Any) -> None:
        cuda.syncthreads()
        y[0] = 1

    y = weir.zeros(12, "int32", device="cuda:0")
    waits[weir.NdRange(64, 32)](y)
    assert y.numpy()[0] == 1
    (code,) = waits._its.compiled.values()
    assert code.uses == [2]  # written


def test_a_body_may_be_for_cuda_devices_alone(compiled: Any) -> None:
    """Nothing is found out about it on the host, so all of its arrays count as read and written."""
    compiled(GRID)
    cuda = pytest.importorskip("numba.cuda")

    @weir.kernel
    def waits(item: Any, y: Any) -> None:
        cuda.syncwarp()
        y[0] = 1

    waits[weir.NdRange(64, 32)](weir.zeros(12, "int32", device="cuda:0"))
    (code,) = waits._its.compiled.values()
    assert code.uses == [4]


def test_arrays_of_the_host_are_refused(compiled: Any) -> None:
    compiled(AXPY)
    with pytest.raises(weir.ArgumentError, match="cpu"):
        axpy_kernel()[weir.Range(N), weir.Stream("cuda:0")](1.0, weir.ones(N, "float32"), ones())


def test_without_what_numba_needs_for_cuda_a_launch_says_what_to_install(driver: CudaDriver) -> None:
    """The fake driver is none for Numba."""
    with pytest.raises(weir.MissingLibrary, match=r"numba-cuda\[cu13\]"):
        axpy_kernel()[weir.Range(N)](1.0, ones(), ones())
