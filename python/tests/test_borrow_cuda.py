"""Borrows, and memory kept for graphs, with torch and CuPy on a GPU (X6, X7; A13, A15), with controls."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import weir
from cuda_packages import N, are_here, cupy, held_on_device, torch
from eventually import eventually

pytestmark = pytest.mark.skipif(
    not are_here,
    reason="torch, CuPy and a GPU are needed: test_borrow_driver.py and test_borrow_nested.py have such cases for the "
    "fake driver",
)


def current() -> tuple[int, int]:
    """The current streams of torch and of CuPy, as their kernels get them."""
    return torch.cuda.current_stream().cuda_stream, cupy.cuda.get_current_stream().ptr


def array() -> weir.Array:
    x = weir.zeros(N, "float32", device="cuda:0")
    weir.synchronize("cuda:0")
    return x


@contextlib.contextmanager
def by_with(s: Any, c: Any) -> Iterator[None]:
    with torch.cuda.stream(s), c:
        yield


@contextlib.contextmanager
def for_good(s: Any, c: Any) -> Iterator[None]:
    torchs, cupys = torch.cuda.current_stream(), cupy.cuda.get_current_stream()
    torch.cuda.set_stream(s)
    c.use()
    try:
        yield
    finally:
        torch.cuda.set_stream(torchs)
        cupys.use()


Switch = Callable[[Any, Any], contextlib.AbstractContextManager[None]]  # of a stream of torch and one of CuPy


@pytest.mark.parametrize("made_current", [by_with, for_good, None])
def test_a13_the_stream_is_current_inside_alone(made_current: Switch | None) -> None:
    """Whichever way the streams before became current; nested, and after an exception."""
    x, outer, inner = array(), weir.Stream("cuda:0"), weir.Stream("cuda:0")
    torchs, cupys = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
    with contextlib.nullcontext() if made_current is None else made_current(torchs, cupys):
        before = current()
        with weir.borrow(x, stream=outer):
            assert current() == (outer.handle, outer.handle)
            with pytest.raises(KeyError), weir.borrow(x, stream=inner):
                assert current() == (inner.handle, inner.handle)
                raise KeyError("in the block")
            assert current() == (outer.handle, outer.handle)
        assert current() == before
        if made_current is not None:
            assert before == (torchs.cuda_stream, cupys.ptr)


def test_a13_threads_and_tasks_have_their_own() -> None:
    x, before = array(), current()
    together = threading.Barrier(2)
    seen: list[bool] = []

    def borrows() -> None:
        s = weir.Stream("cuda:0")
        with weir.borrow(x, stream=s):
            together.wait(60)
            seen.append(current() == (s.handle, s.handle))
            together.wait(60)

    async def awaits() -> None:
        s = weir.Stream("cuda:0")
        with weir.borrow(x, write=[x], stream=s) as (view,):
            await asyncio.sleep(0)
            seen.append(current() == (s.handle, s.handle))
            view += 1
            await s.record()
        seen.append(current() == before)

    threads = [threading.Thread(target=borrows) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    asyncio.run(awaits())
    assert seen == [True] * 4
    assert current() == before
    assert x.numpy()[0] == 1


def nothing_is_left() -> bool:
    weir.safe_point()
    return weir.memory.stats("cuda:0")["quarantined"] == 0


@pytest.mark.parametrize("pinned", [True, False])
def test_x7_memory_that_a_graph_of_torchs_uses_is_kept_by_a_pin(pinned: bool) -> None:
    gc.collect()
    eventually(nothing_is_left)
    x = array()
    t, graph = torch.from_dlpack(x), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        t.add_(1)
    held = x.pin() if pinned else None
    address = t.data_ptr()
    del x, t
    gc.collect()
    eventually(nothing_is_left)
    others = [weir.full(N, 9, "float32", device="cuda:0") for _ in range(4)]
    weir.synchronize("cuda:0")
    graph.replay()
    torch.cuda.synchronize()
    found = sorted({float(other.numpy()[0]) for other in others})
    assert found == ([9.0] if pinned else [9.0, 10.0]), "control: the graph writes to memory that has a new owner"
    del others
    if held is not None:
        held.release()
        gc.collect()
        eventually(nothing_is_left)
        again = [weir.empty(N, "float32", device="cuda:0") for _ in range(8)]
        assert address in [torch.from_dlpack(one).data_ptr() for one in again], "it is the pool's again"


def test_a15_a_shared_array_that_is_released_in_a_capture_stays_until_a_safe_point() -> None:
    gc.collect()
    eventually(nothing_is_left)
    pool = cupy.get_default_memory_pool()
    y = torch.zeros(N, device="cuda")
    before = pool.used_bytes()
    t = torch.from_dlpack(weir.share(cupy.ones(N, "float32")))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y += 1
        del t
        eventually(lambda: weir.memory.stats("cuda:0")["quarantined"] >= 4 * N)
        y += 1
    graph.replay()
    torch.cuda.synchronize()
    assert y[[0, N - 1]].tolist() == [2, 2], "the capture has survived"
    assert pool.used_bytes() - before >= 4 * N, "CuPy's memory is kept"
    eventually(nothing_is_left)
    eventually(lambda: pool.used_bytes() <= before)


def test_l6_under_unknown_captures_a_loop_of_shares_stays_within_the_limit() -> None:
    gc.collect()
    eventually(nothing_is_left)
    formerly = weir.memory.stats("cuda:0")["limit"]
    most = 16 * 4 * N
    weir.memory.limit("cuda:0", most)
    quarantined = 0
    try:
        with pytest.raises(weir.OutOfMemory, match=r"captures.*safe_point"):
            for _ in range(40):
                torch.from_dlpack(weir.share(cupy.ones(N, "float32")))
                gc.collect()
                weir.synchronize("cuda:0")
                quarantined = max(quarantined, weir.memory.stats("cuda:0")["quarantined"])
        assert 8 * 4 * N <= quarantined <= most
        weir.safe_point()
        torch.from_dlpack(weir.share(cupy.ones(N, "float32")))
    finally:
        weir.memory.limit("cuda:0", formerly)
    eventually(nothing_is_left)


@pytest.mark.parametrize("producers", [None, "a stream"])
@pytest.mark.parametrize("told", [True, False])
def test_a17_a_kernel_that_weir_does_not_see_is_told_and_handed_back(producers: str | None, told: bool) -> None:
    """The producer's stream waits for it, and not the host. Control: a kernel that nobody tells Weir of."""
    consumer = cupy.cuda.Stream(non_blocking=True)
    theirs = torch.cuda.default_stream() if producers is None else torch.cuda.Stream()
    with torch.cuda.stream(theirs):
        t = torch.zeros(N, device="cuda")
        x = weir.asarray(t)
        torch.cuda.synchronize()
        with held_on_device(consumer.ptr):
            if told:
                x.used_on(weir.adopt(consumer))
            capsule = x.__dlpack__(stream=theirs.cuda_stream or 1, max_version=(1, 0))
            came_later = theirs.record_event()
            assert came_later.query() != told
            assert not consumer.done, "the host has not waited"
        del capsule
        torch.cuda.synchronize()
