"""Kernels of Triton, torch.compile, Numba and CuPy on torch's memory on a CUDA device: watched, and kept in order.

A kernel that spins stands where work would be late without the waits. The controls show that it is.
"""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import weir
import weir.torch
from torch_device import torch

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="torch needs a CUDA device here")

N = 1 << 18  # elements: 1 MiB
LATE = 20_000_000  # cycles, some 10 ms

triton: Any = None
tl: Any = None
if torch is not None and importlib.util.find_spec("triton"):
    import triton
    import triton.language as tl

needs_triton = pytest.mark.skipif(triton is None, reason="Triton is not installed")
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
needs_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")


def doubled_body(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@pytest.fixture(autouse=True)
def nothing_runs() -> None:
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


Launch = Callable[[Any, Any, Any], None]  # x, out, the stream that is torch's current one


@pytest.fixture(
    params=[
        pytest.param(name, marks=mark)
        for name, mark in (
            ("triton", needs_triton),
            ("numba", needs_numba),
            ("cupy raw", needs_cupy),
            ("cupy ufunc", needs_cupy),
            ("cupy elementwise", needs_cupy),
            ("cupy dlpack", needs_cupy),
            ("compile", needs_triton),
        )
    ]
)
def doubled(request: pytest.FixtureRequest) -> Launch:
    """Puts out = 2 * x into torch's current stream."""
    if request.param == "triton":
        kernel = triton.jit(doubled_body)
        weir.torch.declare(kernel, writes=["out"])
        return lambda x, out, _: kernel[(triton.cdiv(N, 1024),)](x, out, N, BLOCK=1024)
    if request.param == "compile":
        torch._dynamo.reset()
        fused = torch.compile(lambda x, out: out.copy_(x * 2))
        return lambda x, out, _: fused(x, out)
    if request.param == "numba":
        from numba import cuda

        @cuda.jit
        def scale(x: Any, out: Any) -> None:
            i = cuda.grid(1)
            if i < x.size:
                out[i] = x[i] * 2

        weir.torch.declare(scale, writes=["out"])
        return lambda x, out, on: scale[N // 256, 256, cuda.external_stream(on.cuda_stream)](
            cuda.as_cuda_array(x), cuda.as_cuda_array(out)
        )
    import cupy

    def on_its_stream(launch: Callable[[Any, Any], object]) -> Launch:
        take = cupy.from_dlpack if request.param == "cupy dlpack" else cupy.asarray

        def run(x: Any, out: Any, on: Any) -> None:
            with cupy.cuda.ExternalStream(on.cuda_stream):
                launch(take(x), take(out))

        return run

    if request.param == "cupy elementwise":
        return on_its_stream(cupy.ElementwiseKernel("T x", "T out", "out = x * 2", "weir_doubled"))
    if request.param == "cupy ufunc":
        return on_its_stream(lambda x, out: cupy.multiply(x, 2, out=out))
    raw = cupy.RawKernel(
        'extern "C" __global__ void scale(const float* x, float* out) {'
        " const int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[i] * 2; }",
        "scale",
    )
    weir.torch.declare(raw, writes=[1])
    return on_its_stream(lambda x, out: raw((N // 256,), (256,), (x, out)))


def program(doubled: Launch, *, waits: bool = False) -> float:
    """x is late on a side stream; its double is made on another, and used on the default stream. No more waits than
    those at its end, unless `waits`."""
    producer, worker, main = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
    x, out = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    producer.wait_stream(main)
    worker.wait_stream(main)
    with torch.cuda.stream(producer):
        torch.cuda._sleep(LATE)
        x.fill_(3)
    with torch.cuda.stream(worker):
        if waits:
            worker.wait_stream(producer)
        doubled(x, out, worker)
    if waits:
        main.wait_stream(worker)
    result = out + 1
    torch.cuda.synchronize()
    return float(result.min())


def test_o1_launches_are_kept_in_order(doubled: Launch) -> None:
    program(doubled)  # compiles
    with weir.torch.safe() as safe:
        assert program(doubled) == 7
    assert safe.waits > 0
    assert any(program(doubled) != 7 for _ in range(3)), "the control"


def test_v1_races_with_launches_are_found(doubled: Launch) -> None:
    program(doubled)
    with weir.torch.check() as report:
        program(doubled)
    assert len(report) >= 2, str(report)  # the launch with what came before it, and with what comes behind
    with weir.torch.check() as mended:
        assert program(doubled, waits=True) == 7
    assert not mended, str(mended)


@needs_triton
def test_v1_a_launch_of_triton_names_the_program_s_line() -> None:
    kernel = triton.jit(doubled_body)
    x, out = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    kernel[(triton.cdiv(N, 1024),)](x, out, N, BLOCK=1024)
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        kernel[(triton.cdiv(N, 1024),)](x, out, N, BLOCK=1024)
        with torch.cuda.stream(torch.cuda.Stream()):
            out.add_(1)
    assert len(report) == 1
    assert __file__.rpartition("/")[2] in str(report)
    assert "doubled_body" in str(report)
    assert report[0].certainty == "possible"
    assert not [text for text in report.unseen if "CuPy" not in text]


@needs_cupy
def test_v1_cupy_that_waits_itself_is_silent() -> None:
    import cupy

    x = torch.zeros(N, device="cuda")
    theirs = cupy.asarray(x)
    torch.cuda.synchronize()
    side = cupy.cuda.Stream(non_blocking=True)
    with weir.torch.check() as report:
        with side:
            theirs += 1
            done = side.record()
        cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream).wait_event(done)
        x.add_(1)
        with side:
            side.wait_event(cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream).record())
            theirs *= 2
        cupy.cuda.Device().synchronize()
        x.add_(1)
        torch.cuda.synchronize()
        with side:
            theirs -= 1
            assert float(theirs.get()[0]) == 4
        x.add_(1)
    assert not report, str(report)
    assert float(x[0]) == 5
    with weir.torch.check() as control:
        with side:
            theirs += 1
        x.add_(1)
    assert len(control) == 1


@needs_cupy
def test_o1_streams_that_are_destroyed_are_not_used_again() -> None:
    import cupy

    x = torch.zeros(N, device="cuda")
    add = cupy.ElementwiseKernel("T x", "T out", "out = x + 1", "weir_added")
    with weir.torch.safe():
        for _ in range(8):
            with cupy.cuda.Stream(non_blocking=True):
                add(cupy.asarray(x), cupy.asarray(x))
            gc.collect()
            with torch.cuda.stream(torch.cuda.Stream()):
                x.mul_(2)
    assert float(x[0]) == 510.0


@needs_triton
def test_o1_a_compiled_model_trains_as_ever() -> None:
    def losses(around: Any) -> list[float]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 1)).cuda()
        step = torch.compile(lambda x: model(x).square().mean())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.randn(32, 64, device="cuda")
        found = []
        with around:
            for _ in range(4):
                optimizer.zero_grad()
                loss = step(x)
                loss.backward()
                optimizer.step()
                found.append(float(loss))
        return found

    alone = losses(nullcontext())
    report = weir.torch.check()
    assert losses(report) == pytest.approx(alone)
    assert losses(weir.torch.safe()) == pytest.approx(alone)
