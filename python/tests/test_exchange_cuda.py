"""The exchange on a GPU with torch, CuPy and Numba (X2, X3, X6, X7, X8, L5; scenarios A and B), with controls."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any

import pytest
import weir
from cuda_packages import CYCLES, N, are_here, cupy, found, no_captures, torch  # noqa: F401
from eventually import eventually

pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_exchange_driver.py has such cases for the fake driver",
    ),
    pytest.mark.usefixtures("no_captures"),
]


def torch_array() -> Any:
    return torch.zeros(N, device="cuda", dtype=torch.float32)


def cupy_array() -> Any:
    return cupy.zeros(N, dtype=cupy.float32)


def delay_torch() -> None:
    torch.cuda._sleep(CYCLES)


@functools.cache
def spin() -> Any:
    """A kernel of CuPy's that takes so many cycles."""
    source = """extern "C" __global__ void spin(long long cycles) {
        const long long start = clock64();
        while (clock64() - start < cycles) { }
    }"""
    return cupy.RawKernel(source, "spin")


def delay_cupy() -> None:
    spin()((1,), (1,), (cupy.int64(CYCLES),))


PRODUCERS = [pytest.param(torch_array, delay_torch, id="torch"), pytest.param(cupy_array, delay_cupy, id="cupy")]


@pytest.mark.parametrize(("make", "delay"), PRODUCERS)
def test_x6_a_live_import_comes_after_the_producer_and_before_it(
    make: Callable[[], Any], delay: Callable[[], None]
) -> None:
    arr = make()
    x = weir.asarray(arr)
    delay()
    arr += 1
    res = x * 10  # on a stream of Weir's
    arr += 2
    x += 100
    arr += 3
    assert res.numpy()[[0, N - 1]].tolist() == [10, 10]
    assert x.numpy()[[0, N - 1]].tolist() == [106, 106]


@pytest.mark.parametrize(("make", "delay"), PRODUCERS)
def test_x6_control_without_order_the_producers_work_is_missed(
    make: Callable[[], Any], delay: Callable[[], None]
) -> None:
    arr = make()
    torch.cuda.synchronize()
    x = weir.asarray(arr)
    delay()
    arr += 1
    with weir.ordering("manual"):
        res = x * 10
    assert res.numpy()[0] == 0


def test_x6_two_operands_of_two_packages_on_two_streams() -> None:
    a, b = torch_array(), cupy_array()
    with torch.cuda.stream(torch.cuda.Stream()), cupy.cuda.Stream(non_blocking=True):
        x, y = weir.asarray(a), weir.asarray(b)
        delay_torch()
        a += 1
        delay_cupy()
        b += 2
        res = x + y
        a += 5
        b += 5
        del a, b, x, y
        gc.collect()
        assert res.numpy()[[0, N - 1]].tolist() == [3, 3]


@pytest.mark.parametrize("stream", [None, 1, 2, "handle"])
def test_x2_an_export_has_the_named_stream_wait(stream: int | str | None) -> None:
    held = torch.cuda.Stream()
    s = weir.adopt(held)
    x = weir.zeros(N, "float32", device="cuda:0")
    with torch.cuda.stream(held):
        torch.cuda._sleep(CYCLES)
    with s:
        x += 1
    consumer = torch.cuda.Stream()
    handle = consumer.cuda_stream if stream == "handle" else stream
    capsule = x.__dlpack__(stream=handle, max_version=(1, 0))
    raw = torch.from_dlpack(capsule)
    of_handle = {None: torch.cuda.default_stream(), 1: torch.cuda.default_stream(), 2: torch.cuda.ExternalStream(2)}
    with torch.cuda.stream(of_handle.get(stream, consumer)):
        seen = raw + 0
    torch.cuda.synchronize()
    assert seen.min().item() == 1


@pytest.mark.parametrize("stream", [0, -2, -17])
def test_x2_streams_that_are_none_are_refused(stream: int) -> None:
    with pytest.raises(weir.ArgumentError, match="pass the handle"):
        weir.zeros(4, device="cuda:0").__dlpack__(stream=stream)


def test_x7_later_operations_come_after_the_consumers_work() -> None:
    x = weir.ones(N, "float32", device="cuda:0")
    t = torch.from_dlpack(x)
    delay_torch()
    seen = t + 0
    x += 1
    t += 10
    assert seen.min().item() == 1
    assert seen.max().item() == 1
    assert x.numpy()[0] == 12


def corrupted_in_torch(share: Callable[[Any], Any], tries: int) -> int:
    """How many elements torch, on another stream, sees of what came after both sides released an array of CuPy."""
    wrong = 0
    for i in range(tries):
        a = cupy.full(N, 1.0, dtype=cupy.float32)
        t = torch.from_dlpack(share(a))
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(CYCLES // 4 + i * 1000)  # until long after the memory has a new owner
            out = torch.empty_like(t)
            torch.add(t, 0, out=out)
        del a, t
        b = cupy.full(N, 99.0, dtype=cupy.float32)
        torch.cuda.synchronize()
        wrong += int((out != 1).sum().item())
        del b
    return wrong


def corrupted_in_cupy(share: Callable[[Any], Any], tries: int) -> int:
    """How many elements CuPy, on another stream, sees of what came after both sides released a tensor of torch."""
    wrong = 0
    out = cupy.empty(N, dtype=cupy.float32)
    cupy.add(out, 0, out=out)  # loads the kernel, which may wait for the device
    delay_cupy()
    torch.cuda.synchronize()
    for i in range(tries):
        a = torch.full((N,), 1.0, dtype=torch.float32, device="cuda")
        c = cupy.from_dlpack(share(a))
        s = cupy.cuda.Stream(non_blocking=True)
        s.wait_event(cupy.cuda.get_current_stream().record())  # CuPy's current stream comes after torch's
        with s:
            spin()((1,), (1,), (cupy.int64(CYCLES // 4 + i * 1000),))
            cupy.add(c, 0, out=out)
        del a, c
        b = torch.full((N,), 99.0, dtype=torch.float32, device="cuda")
        torch.cuda.synchronize()
        wrong += int((out != 1).sum().item())
        del b
    return wrong


BROKERED = [pytest.param(corrupted_in_torch, id="cupy to torch"), pytest.param(corrupted_in_cupy, id="torch to cupy")]


@pytest.mark.parametrize("corrupted", BROKERED)
def test_x8_neither_sides_memory_is_used_again_too_early(corrupted: Callable[[Callable[[Any], Any], int], int]) -> None:
    assert corrupted(weir.share, 40) == 0


@pytest.mark.parametrize("corrupted", BROKERED)
def test_x8_control_without_weir_it_is(corrupted: Callable[[Callable[[Any], Any], int], int]) -> None:
    cupy.get_default_memory_pool().free_all_blocks()
    torch.cuda.empty_cache()
    assert corrupted(lambda a: a, 40) == 40 * N, "each element of each array"


def await_return(used: Callable[[], int], before: int) -> None:
    """Waits until no more is in use than before: the memory goes back once the consumer's work is over."""
    torch.cuda.synchronize()
    eventually(lambda: used() <= before)


def most_in_use(make: Callable[[], Any], take: Callable[[Any], Any], used: Callable[[], int]) -> int:
    """How many arrays at most are in use while 200 are passed on, changed and dropped, and nothing is waited for."""
    torch.cuda.synchronize()
    before, most = used(), 0
    for _ in range(200):
        taken = take(weir.share(make()))
        most = max(most, used() - before)
        taken += 1
        del taken
    await_return(used, before)
    return most // (4 * N)


SHARED = [
    pytest.param(cupy_array, lambda a: torch.from_dlpack(a), "cupy", id="cupy to torch"),
    pytest.param(torch_array, lambda a: cupy.from_dlpack(a), "torch", id="torch to cupy"),
]


@pytest.mark.parametrize(("make", "take", "owner"), SHARED)
def test_l5_shared_memory_comes_back_as_soon_as_it_is_not_in_use(
    make: Callable[[], Any], take: Callable[[Any], Any], owner: str
) -> None:
    """Two arrays and what is in flight, which is little: the device is faster than the loop."""
    used = cupy.get_default_memory_pool().used_bytes if owner == "cupy" else torch.cuda.memory_allocated
    most_in_use(make, take, used)  # loads the kernels
    assert most_in_use(make, take, used) <= 6


def test_x3_numba_arrays_by_the_cuda_array_interface() -> None:
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    import numpy as np

    d = cuda.to_device(np.arange(8, dtype=np.float32))
    x = weir.asarray(d)
    x *= 2
    assert d.copy_to_host().tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    y = cuda.as_cuda_array(weir.arange(4, device="cuda:0"))
    assert y.copy_to_host().tolist() == [0, 1, 2, 3]


def test_x3_cupy_takes_the_interface() -> None:
    x = weir.arange(8.0, device="cuda:0")
    seen = cupy.asarray(x)
    seen *= 3
    x += 1
    assert x.numpy().tolist() == [1 + 3 * i for i in range(8)]


def test_x6_borrow_orders_the_launches_of_others() -> None:
    x = weir.zeros(N, "float32", device="cuda:0")
    y = torch_array()
    delay_torch()
    y += 1
    kernel = cupy.ElementwiseKernel("float32 a, float32 b", "float32 c", "c = a + 2 * b", "borrowed")
    with weir.borrow(x, y, write=[x]) as (vx, vy):
        torch.cuda._sleep(CYCLES)
        cx, cy = cupy.from_dlpack(vx), cupy.from_dlpack(vy)
        kernel(cx, cy, cx)
    x += 1
    y += 100
    assert x.numpy()[[0, N - 1]].tolist() == [3, 3]


def test_x6_control_the_block_alone_orders_nothing() -> None:
    x = weir.zeros(N, "float32", device="cuda:0")
    torch.cuda.synchronize()
    t = torch.from_dlpack(x.__dlpack__(stream=-1, max_version=(1, 0)))
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(CYCLES)
        with weir.ordering("manual"):
            x += 1
        seen = x.numpy()[0]
        t += 10
    assert seen == 1, "Weir's work did not wait for the other stream"


def is_busy(arr: Any) -> bool:
    """Whether the current stream of the array's package has work left."""
    if isinstance(arr, torch.Tensor):
        return not torch.cuda.current_stream().query()
    return not cupy.cuda.get_current_stream().done


@pytest.mark.parametrize(("make", "delay"), PRODUCERS)
def test_p2_library_calls_answer_in_the_operands_package(make: Callable[[], Any], delay: Callable[[], None]) -> None:
    arr = make()
    weir.fft.rfft(arr)  # what is made at the first use
    torch.cuda.synchronize()
    delay()
    arr += 1
    spectrum = weir.fft.rfft(arr)
    busy = is_busy(arr)
    arr += 100
    assert busy, "the call returned before its work was done"
    assert type(spectrum) is type(arr)
    assert abs(complex(spectrum[0]) - N) < 1, "after the first addition, before the second"


@pytest.mark.parametrize(("make", "delay"), PRODUCERS)
def test_p2_plans_and_out_take_them(make: Callable[[], Any], delay: Callable[[], None]) -> None:
    arr = make()
    s = weir.Stream("cuda:0")
    with weir.fft.FFT(arr) as f:
        f.plan(stream=s)
        delay()
        arr += 2
        spectrum = f.execute(stream=s)
        arr += 100
    assert type(spectrum) is type(arr)
    assert abs(complex(spectrum[0]) - 2 * N) < 1
    assert weir.fft.rfft(arr, out=spectrum) is spectrum
    assert abs(complex(spectrum[0]) - 102 * N) < 100


def test_p2_a_sparse_system_of_cupy_with_a_right_hand_side_of_torch() -> None:
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    matrix = sparse.csr_matrix(cupy.diag(cupy.array([2.0, 4.0, 8.0])))
    right = torch.tensor([2.0, 4.0, 8.0], dtype=torch.float64, device="cuda")
    try:
        x = weir.sparse.solve(matrix, right)
    except weir.MissingLibrary as missing:
        pytest.skip(str(missing))
    assert isinstance(x, torch.Tensor)
    assert x.tolist() == [1, 1, 1]


def test_p2_an_array_of_jax_gives_one_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    spectrum = weir.fft.rfft(jax.numpy.ones(N, "float32"))
    assert isinstance(spectrum, jax.Array)
    assert abs(complex(spectrum[0]) - N) < 1


def test_b2_minus_1_is_safe_in_a_capture_of_torch() -> None:
    gc.collect()
    weir.captures("unknown")  # so that nothing that is let go of ends it
    x = weir.zeros(N, "float32", device="cuda:0")
    x.__dlpack__(stream=-1, max_version=(1, 0))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    t = torch.from_dlpack(x)
    with torch.cuda.graph(graph):
        capsule = x.__dlpack__(stream=-1, max_version=(1, 0))
        t += 1
    del capsule
    graph.replay()
    torch.cuda.synchronize()
    assert t[0].item() == 1


def test_a15_a_consumer_that_releases_in_a_capture_of_torchs_does_not_end_it() -> None:
    """torch makes the stream that it captures its current one, which is the one that Weir asks for."""

    def nothing_is_left() -> bool:
        weir.safe_point()
        return weir.memory.stats("cuda:0")["quarantined"] == 0

    gc.collect()
    weir.captures("unknown")
    eventually(nothing_is_left)
    x = weir.empty(N, "float32", device="cuda:0")
    t = torch.from_dlpack(x)
    y = torch_array()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y += 1
        del t, x
        eventually(lambda: weir.memory.stats("cuda:0")["quarantined"] >= 4 * N)
        y += 1
    graph.replay()
    torch.cuda.synchronize()
    assert y[[0, N - 1]].tolist() == [2, 2], "the capture has survived"
    assert weir.memory.stats("cuda:0")["quarantined"] >= 4 * N
    eventually(nothing_is_left)
