"""weir.torch.safe() on a CUDA device: programs without waits give the right results (rules O1, L1).

A kernel that spins stands where work would be late without the waits. The controls show that it is.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import weir
import weir.torch
from torch_device import torch

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="torch needs a CUDA device here")

N = 1 << 18  # elements: 1 MiB
LATE = 20_000_000  # cycles, some 10 ms


@pytest.fixture(autouse=True)
def nothing_runs() -> None:
    torch.cuda.synchronize()


def prefetched() -> float:
    """A loader a batch ahead: batches are copied on a stream of their own, used and dropped on the default stream."""
    copies = torch.cuda.Stream()
    batches = [torch.full((N,), float(i)).pin_memory() for i in range(8)]
    total = torch.zeros(N, device="cuda")

    def load(i: int) -> object:
        with torch.cuda.stream(copies):
            torch.cuda._sleep(LATE)
            return batches[i].to("cuda", non_blocking=True)

    ahead = load(0)
    for i in range(8):
        batch, ahead = ahead, load(min(i + 1, 7))
        total += batch
        del batch
    torch.cuda.synchronize()
    return float(total.min())


def temporaries() -> float:
    """Memory of the default stream that four streams use after it was dropped there."""
    sides = [torch.cuda.Stream() for _ in range(4)]
    totals = [torch.zeros(N, device="cuda") for _ in sides]
    for turn in range(4):
        for side, total in zip(sides, totals, strict=True):
            x = torch.full((N,), float(turn), device="cuda")
            with torch.cuda.stream(side):
                torch.cuda._sleep(LATE)
                total += x
            del x
    torch.cuda.synchronize()
    return min(float(total.min()) for total in totals)


def read_by_the_host() -> float:
    x = torch.full((N,), 5.0, device="cuda")
    staging = torch.zeros(N).pin_memory()
    torch.cuda._sleep(LATE)
    staging.copy_(x, non_blocking=True)
    return float(staging.min())


def two_threads() -> float:
    """Tensors go from one thread and its stream to another thread and its stream."""
    sent: queue.Queue[object] = queue.Queue()
    total = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()

    def produce() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(8):
                torch.cuda._sleep(LATE)
                sent.put(torch.full((N,), float(i), device="cuda"))

    def consume() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(8):
                total.add_(sent.get())

    threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    return float(total.min())


def trained() -> float:
    """A backward pass on another stream than that of the step."""
    side = torch.cuda.Stream()
    w = torch.ones(N, device="cuda", requires_grad=True)
    with torch.cuda.stream(side):
        torch.cuda._sleep(LATE)
        (w * 3).sum().backward()
    with torch.no_grad():
        w -= w.grad
    torch.cuda.synchronize()
    return float(w.min())


@pytest.mark.parametrize(
    ("program", "right", "shows"),
    [
        (prefetched, 28.0, True),
        (temporaries, 6.0, True),
        (read_by_the_host, 5.0, True),
        (two_threads, 28.0, True),
        (trained, -2.0, False),
    ],
)
def test_o1_programs_without_waits_are_right(program: Callable[[], float], right: float, shows: bool) -> None:
    program()  # loads the kernels, which may wait for the device
    with weir.torch.safe():
        assert program() == right
    if shows:
        assert any(program() != right for _ in range(3)), "the control"


def test_o1_what_is_captured_is_left_alone() -> None:
    x = torch.zeros(N, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with weir.torch.safe() as safe:
        with torch.cuda.graph(graph):
            x.add_(1)
        graph.replay()
        torch.cuda.synchronize()
    assert [text for text in safe.unseen if "CUDA graph" in text]
    assert float(x.max()) == 1


@pytest.mark.parametrize("context", [weir.torch.check, weir.torch.safe, nullcontext])
def test_o1_loaders_that_pin_memory(context: Callable[[], object]) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(64.0))
    loader = torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True, num_workers=1)
    total = torch.zeros((), device="cuda")
    with context():  # type: ignore[attr-defined]
        for (batch,) in loader:
            total += batch.to("cuda", non_blocking=True).sum()
    assert float(total) == sum(range(64))
