"""weir.torch on a CUDA device: torch's own streams, events, allocator and pinned memory are heard (rule V1).

That operators' reads and writes follow from their schemas is tested without a device (test_torch_watch.py).
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import weir
import weir.torch
from torch_device import torch, trainer

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="torch needs a CUDA device here")

LINES = Path(__file__).read_text().splitlines()


@pytest.fixture(autouse=True)
def nothing_runs() -> None:
    torch.cuda.synchronize()


def found(report: weir.Report) -> list[tuple[str, str, str]]:
    """The kind of each race, and what stands on both lines."""

    def line(access: weir.Access) -> str:
        return LINES[access.line - 1].strip() if access.file == __file__ else f"{access.file}:{access.line}"

    return [(race.kind, line(race.first), line(race.second)) for race in report]


def test_v1_a_copy_that_nothing_waits_for() -> None:
    batch = torch.ones(64, 1024).pin_memory()
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    with weir.torch.check() as report:
        with torch.cuda.stream(copies):
            on_device = batch.to("cuda", non_blocking=True)
        on_device.record_stream(main)
        y = on_device * 2
    assert found(report) == [("default-stream", 'on_device = batch.to("cuda", non_blocking=True)', "y = on_device * 2")]
    assert report[0].certainty == "definite"
    assert "record_event()" in report[0].mend
    assert not report.unseen
    with weir.torch.check() as mended:
        with torch.cuda.stream(copies):
            on_device = batch.to("cuda", non_blocking=True)
        on_device.record_stream(main)
        main.wait_stream(copies)
        y = on_device * 2
    assert found(mended) == []
    del y


def test_v1_memory_that_is_freed_while_another_stream_may_use_it() -> None:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()

    def step(is_recorded: bool, is_joined: bool) -> list[tuple[str, str, str]]:
        with weir.torch.check() as report:
            x = torch.ones(1024, device="cuda")
            side.wait_stream(main)
            with torch.cuda.stream(side):
                y = x + 1
            if is_recorded:
                x.record_stream(side)
            if is_joined:
                main.wait_stream(side)
            del x
        del y
        return found(report)

    assert step(False, False) == [("use-after-free", "y = x + 1", 'x = torch.ones(1024, device="cuda")')]
    assert step(True, False) == []
    assert step(False, True) == []


def test_v1_memory_is_used_again_on_its_stream() -> None:
    with weir.torch.check() as report:
        addresses = set()
        for _ in range(8):
            x = torch.ones(1 << 18, device="cuda")
            addresses.add(x.data_ptr())
            x.add_(1)
            del x
    assert len(addresses) == 1, "the control: the allocator gives the same memory out again"
    assert found(report) == []


def test_v1_events() -> None:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    x = torch.zeros(1024, device="cuda")
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        x.add_(1)
        event = main.record_event()
        side.wait_event(event)
        with torch.cuda.stream(side):
            x.mul_(2)
    assert found(report) == []
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        event = main.record_event()
        x.add_(1)
        side.wait_event(event)
        with torch.cuda.stream(side):
            x.mul_(2)
    assert found(report) == [("stale-event", "x.add_(1)", "x.mul_(2)")]


@pytest.mark.parametrize(
    "wait", ["none", "event", "stream", "device", "query", "stream query", "item", "another stream"]
)
def test_v1_the_host_reads_what_a_copy_writes(wait: str) -> None:
    x = torch.ones(1024, device="cuda")
    staging = torch.zeros(1024).pin_memory()
    other = torch.cuda.Stream()
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        staging.copy_(x, non_blocking=True)
        stream = torch.cuda.current_stream()
        event = stream.record_event()
        if wait == "event":
            event.synchronize()
        elif wait == "stream":
            stream.synchronize()
        elif wait == "device":
            torch.cuda.synchronize()
        elif wait == "query":
            while not event.query():
                pass
        elif wait == "stream query":
            while not stream.query():
                pass
        elif wait == "item":
            x.sum().item()
        elif wait == "another stream":
            other.synchronize()
        total = staging.sum()
    racy = wait in ("none", "another stream")
    expected = [("host", "staging.copy_(x, non_blocking=True)", "total = staging.sum()")] if racy else []
    assert found(report) == expected
    torch.cuda.synchronize()
    del total


def test_v1_the_host_changes_what_a_copy_reads() -> None:
    x = torch.zeros(1024, device="cuda")
    staging = torch.ones(1024).pin_memory()
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        x.copy_(staging, non_blocking=True)
        staging.fill_(2)
        torch.cuda.synchronize()
        staging.fill_(3)
    assert found(report) == [("host", "x.copy_(staging, non_blocking=True)", "staging.fill_(2)")]


def test_v1_a_copy_that_waits_orders_the_host() -> None:
    side = torch.cuda.Stream()
    x = torch.zeros(1024, device="cuda")
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        x.add_(1)
        assert x.cpu()[0] == 1
        with torch.cuda.stream(side):
            x.mul_(2)
    assert found(report) == []


def test_v1_backward_passes_run_on_the_streams_of_the_forward_pass() -> None:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    w = torch.ones(256, 256, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        with torch.cuda.stream(side):
            loss = (w @ w).sum()
            loss.backward()
        assert w.grad is not None
        w.grad.zero_()
    assert found(report), "main does not wait for side"
    assert {race.second.label for race in report} == {"aten::zero_"}
    torch.cuda.synchronize()
    w.grad = None
    with weir.torch.check() as report:
        with torch.cuda.stream(side):
            loss = (w @ w).sum()
            loss.backward()
        main.wait_stream(side)
        w.grad.zero_()
    assert found(report) == []


def test_v1_threads_have_streams_of_their_own() -> None:
    side = torch.cuda.Stream()
    x = torch.zeros(1024, device="cuda")
    torch.cuda.synchronize()

    def body() -> None:
        with torch.cuda.stream(side):
            x.add_(1)

    with weir.torch.check() as report:
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        x.mul_(2)
    assert found(report) == [("default-stream", "x.add_(1)", "x.mul_(2)")]


def test_v1_what_is_captured_is_named() -> None:
    x = torch.zeros(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        with torch.cuda.graph(graph):
            x.add_(1)
        graph.replay()
    assert [text for text in report.unseen if "CUDA graph" in text]
    torch.cuda.synchronize()
    assert x[0] == 1


def test_v1_a_model_in_training_runs_as_it_is() -> None:
    step = trainer("cuda")
    losses = [step() for _ in range(3)]
    with weir.torch.check() as report:
        losses += [step() for _ in range(3)]
    assert found(report) == []
    assert losses == sorted(losses, reverse=True)
