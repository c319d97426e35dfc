"""Launchers of other packages inside a borrow on a GPU (K2, X6), and `share` in many tries, with controls."""

from __future__ import annotations

import gc
import importlib
import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import weir
from cuda_launchers import Launcher, by_cupy, by_numba, by_torch, by_triton
from cuda_packages import CYCLES, N, are_here, cupy, held_on_device, no_captures, torch  # noqa: F401

TRIES = int(os.environ.get("WEIR_TEST_SHARED_ARRAYS", "40"))


pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_borrow_driver.py has such cases for the fake driver",
    ),
    pytest.mark.usefixtures("no_captures"),
]


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


class Direction(NamedTuple):
    """From one package to the other: an array of ones; the other's view; what the other reads on the stream."""

    make: Callable[[float], Any]
    view: Callable[[Any], Any]
    read: Callable[[Any, Any], Any]


def of_cupy(value: float) -> Any:
    return cupy.full(N, value, dtype=cupy.float32)


def of_torch(value: float) -> Any:
    return torch.full((N,), value, dtype=torch.float32, device="cuda")


def read_by_torch(t: Any, s: Any) -> Any:
    with torch.cuda.stream(s):
        return torch.add(t, 0)


def read_by_cupy(c: Any, s: Any) -> Any:
    with cupy.cuda.ExternalStream(s.cuda_stream):
        return torch.from_dlpack(cupy.add(c, 0))


@pytest.fixture(params=["cupy to torch", "torch to cupy"])
def direction(request: pytest.FixtureRequest) -> Direction:
    to_torch = Direction(of_cupy, lambda x: torch.from_dlpack(x), read_by_torch)
    to_cupy = Direction(of_torch, lambda x: cupy.from_dlpack(x), read_by_cupy)
    chosen = to_torch if request.param == "cupy to torch" else to_cupy
    chosen.read(chosen.view(chosen.make(1)), torch.cuda.Stream())  # loads the kernels
    torch.cuda.synchronize()
    return chosen


def test_x8_in_many_tries_nothing_is_wrong_and_memory_stays(direction: Direction) -> None:
    """With random delays; no call waits for the device but the one that looks at the result."""
    delays = random.Random(1)
    s = torch.cuda.Stream()
    reserved = torch.cuda.memory_reserved() + cupy.get_default_memory_pool().total_bytes()
    wrong = 0
    for _ in range(TRIES):
        a = direction.make(1)
        x = direction.view(weir.share(a))
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(CYCLES // 40 + delays.randrange(CYCLES // 40))
        out = direction.read(x, s)
        del a, x
        b = direction.make(99)
        torch.cuda.synchronize()
        wrong += int((out != 1).sum().item())
        del b, out
    assert wrong == 0
    more = torch.cuda.memory_reserved() + cupy.get_default_memory_pool().total_bytes() - reserved
    assert more <= 16 * 4 * N


def test_x8_the_host_does_not_wait_for_a_consumer_that_runs_when_both_sides_let_go(direction: Direction) -> None:
    s = torch.cuda.Stream()
    for _ in range(5):
        a = direction.make(1)
        x = direction.view(weir.share(a))
        s.wait_stream(torch.cuda.current_stream())
        with held_on_device(s.cuda_stream):
            out = direction.read(x, s)
            del a, x
            b = direction.make(99)
            assert not s.query(), "something has waited on the host"
        torch.cuda.synchronize()
        assert (out == 1).all().item()
        del b
