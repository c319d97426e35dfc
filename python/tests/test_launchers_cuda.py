"""Launchers of other packages inside a borrow on a GPU (K2, X6), and `share` in many tries, with controls."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import weir
from cuda_packages import CYCLES, N, are_here, cupy, held_on_device, no_captures, torch  # noqa: F401

TRIES = int(os.environ.get("WEIR_TEST_SHARED_ARRAYS", "40"))


pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_borrow_driver.py has such cases for the fake driver",
    ),
    pytest.mark.usefixtures("no_captures"),
]


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

    def __call__(self, x: weir.Array, y: weir.Array) -> None:
        self.add(self.view(x), self.view(y))


def by_cupy() -> Launcher:
    """A RawKernel, on CuPy's current stream. By DLPack: `cupy.asarray` makes the host wait for the array's stream."""

    def add(x: object, y: object) -> None:
        raw_kernel()((N // 256,), (256,), (x, y, cupy.int32(N)))

    return Launcher(cupy.from_dlpack, add)


def by_torch() -> Launcher:
    """An operator, on torch's current stream."""
    return Launcher(torch.from_dlpack, lambda x, y: torch.Tensor.add_(y, x))


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

    return Launcher(functools.partial(cuda.as_cuda_array, sync=False), add)


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
    return Launcher(torch.from_dlpack, lambda x, y: module.add[(N // 1024,)](x, y, N, BLOCK=1024))


@pytest.fixture(scope="module", params=["cupy", "torch", "numba", "triton"])
def launch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Launcher:
    """Used once, with what the tests do beside: to compile and to load a kernel may wait for the device."""
    name: str = request.param
    if name in ("numba", "triton"):
        pytest.importorskip({"numba": "numba.cuda"}.get(name, name))
    if name == "numba":
        try:
            importlib.import_module("numba.cuda.cudaimpl")
        except AttributeError as why:
            pytest.skip(f"this version of numba-cuda does not work with this NumPy: {why}")
    chosen = (
        by_triton(tmp_path_factory.mktemp("triton"))
        if name == "triton"
        else {"cupy": by_cupy, "torch": by_torch, "numba": by_numba}[name]()
    )
    x, y = weir.zeros(N, "float32", device="cuda:0"), weir.zeros(N, "float32", device="cuda:0")
    x += 1
    with weir.borrow(x, y, write=[y]) as views:
        chosen(*views)
    y *= 1
    assert y.numpy()[[0, N - 1]].tolist() == [1, 1]
    return chosen


def test_k2_a_launch_comes_after_weirs_work_and_before_it(launch: Launcher) -> None:
    x, y = weir.zeros(N, "float32", device="cuda:0"), weir.zeros(N, "float32", device="cuda:0")
    producer, lent, consumer = (weir.Stream("cuda:0") for _ in range(3))
    with held_on_device(producer.handle):
        with producer:
            x += 5
        with weir.borrow(x, y, write=[y], stream=lent) as views:
            launch(*views)
        del views
        with consumer:
            y *= 10
        assert not producer.done, "something has waited on the host"
        assert not consumer.done
    assert y.numpy()[[0, N - 1]].tolist() == [50, 50]


def test_k2_control_in_manual_the_launch_does_not_wait(launch: Launcher) -> None:
    """The views are made before: what a protocol asks for when it makes one is ordered in each mode."""
    x, y = weir.zeros(N, "float32", device="cuda:0"), weir.zeros(N, "float32", device="cuda:0")
    producer, lent, reader = (weir.Stream("cuda:0") for _ in range(3))
    views = launch.view(x), launch.view(y)
    weir.synchronize("cuda:0")
    with weir.ordering("manual"), held_on_device(producer.handle):
        with producer:
            x += 5
        with weir.borrow(x, y, write=[y], stream=lent):
            launch.add(*views)
        lent.synchronize()
        assert not producer.done
        with reader:
            seen = y.copy()
        reader.synchronize()
    assert seen.numpy()[[0, N - 1]].tolist() == [0, 0]


def test_k2_a_launch_is_checked(launch: Launcher) -> None:
    x, y = weir.zeros(N, "float32", device="cuda:0"), weir.zeros(N, "float32", device="cuda:0")
    producer, lent = weir.Stream("cuda:0", name="producer"), weir.Stream("cuda:0", name="lent")
    with weir.check() as report, weir.ordering("manual"):
        with producer:
            x += 5
        with weir.borrow(x, y, write=[y], stream=lent) as (view_x, view_y):
            launch(view_x, view_y)
    assert "RAW race" in str(report), str(report)


def test_a_seeds_kernel_case_with_the_array_dropped_and_the_stream_ended() -> None:
    """`res = kernel(arr); arr += 2`, with `del arr` in between, from each package to each."""
    for make in (torch.zeros, cupy.zeros):
        on = {"device": "cuda"} if make is torch.zeros else {}
        arr = make(N, dtype=torch.float32 if on else cupy.float32, **on)
        torch.cuda._sleep(CYCLES)
        if make is torch.zeros:
            arr += 1
        else:
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                arr += 1
        x = weir.asarray(arr)
        if make is cupy.zeros:  # the work was on torch's stream: says so to Weir
            x.used_on(torch.cuda.current_stream())
        s = weir.Stream("cuda:0")
        with s:
            res = x * 10
        arr += 2
        del arr, x
        s.close()
        del s
        gc.collect()
        filler = [make(N, dtype=torch.float32 if on else cupy.float32, **on) for _ in range(8)]
        assert res.numpy()[[0, N - 1]].tolist() == [10, 10]
        del filler


def consumed(t: Any, s: Any) -> Any:
    """What torch reads of a tensor on its stream."""
    with torch.cuda.stream(s):
        return torch.add(t, 0)


def wrong_results(share: Callable[[Any], Any], tries: int) -> int:
    """How often a consumer sees what came after both sides had dropped the memory."""
    wrong = 0
    delays = random.Random(1)
    for _ in range(tries):
        a = cupy.full(N, 1.0, dtype=cupy.float32)
        t = torch.from_dlpack(share(a))
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(CYCLES // 40 + delays.randrange(CYCLES // 40))
        out = consumed(t, s)
        del a, t
        b = cupy.full(N, 99.0, dtype=cupy.float32)
        torch.cuda.synchronize()
        wrong += int((out != 1).any().item())
        del b
    return wrong


def test_x8_in_many_tries_nothing_is_wrong_and_memory_stays() -> None:
    before = cupy.get_default_memory_pool().total_bytes()
    assert wrong_results(weir.share, TRIES) == 0
    assert cupy.get_default_memory_pool().total_bytes() - before < 64 * 4 * N


def test_x8_the_host_does_not_wait_for_a_consumer_that_runs_when_both_sides_let_go() -> None:
    s = torch.cuda.Stream()
    consumed(torch.zeros(N, device="cuda"), s)  # loads the kernel
    for _ in range(5):
        a = cupy.full(N, 1.0, dtype=cupy.float32)
        t = torch.from_dlpack(weir.share(a))
        s.wait_stream(torch.cuda.current_stream())
        with held_on_device(s.cuda_stream):
            out = consumed(t, s)
            del a, t
            b = cupy.full(N, 99.0, dtype=cupy.float32)
            assert not s.query(), "something has waited on the host"
        torch.cuda.synchronize()
        assert (out == 1).all().item()
        del b
