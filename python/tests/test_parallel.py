"""Fork and join (C7)."""

from __future__ import annotations

import pytest
import weir
from weir.testing import Gate


def test_c7_the_streams_inherit_what_the_launching_stream_did_before(device: weir.Device) -> None:
    launching, other = weir.Stream(device), weir.Stream(device)
    order: list[object] = []
    with Gate() as gate:
        gate.hold(launching)
        weir.host_task(order.append, "before", stream=launching)
        with weir.parallel(3, stream=launching) as streams:
            assert [s.device for s in streams] == [device] * 3
            events = [weir.host_task(order.append, i, stream=s) for i, s in enumerate(streams)]
            weir.host_task(order.append, "control", stream=other).wait()
            assert not any(event.done for event in events)
    launching.synchronize()
    assert order[:2] == ["control", "before"]
    assert set(order[2:]) == {0, 1, 2}


def test_c7_the_launching_stream_goes_on_after_all_of_them(device: weir.Device) -> None:
    launching = weir.Stream(device)
    order: list[str] = []
    gate = Gate()
    with launching, weir.parallel(2) as (first, second):
        gate.hold(first)
        weir.host_task(order.append, "first", stream=first)
        weir.host_task(order.append, "second", stream=second).wait()
        weir.host_task(order.append, "beside", stream=launching).wait()  # never ends if it is ordered
    after = weir.host_task(order.append, "after", stream=launching)
    assert not after.done
    gate.open()
    after.wait()
    assert order == ["second", "beside", "first", "after"]


def test_an_exception_joins_as_well(device: weir.Device) -> None:
    launching = weir.Stream(device)
    gate = Gate()
    with pytest.raises(ZeroDivisionError), weir.parallel(1, stream=launching) as (block,):
        gate.hold(block)
        weir.host_task(lambda: None, stream=block)
        raise ZeroDivisionError
    after = launching.record()
    assert not after.done
    gate.open()
    after.wait()


def test_arrays_are_ordered_through_the_fork() -> None:
    x = weir.zeros(4)
    with weir.parallel(2) as streams:
        for i, s in enumerate(streams):
            with s:
                x[2 * i : 2 * i + 2] = i + 1
    assert x.numpy().tolist() == [1, 1, 2, 2]


def test_wrong_numbers_and_double_use_are_refused() -> None:
    with pytest.raises(weir.ArgumentError, match="-1 streams"):
        weir.parallel(-1)
    with weir.parallel(0) as none:
        assert none == []
    block = weir.parallel(1)
    with block, pytest.raises(weir.StateError, match="in use"):
        block.__enter__()
    with block as again:
        assert len(again) == 1


def test_without_queues_it_runs_in_the_calls() -> None:
    order: list[int] = []
    with weir.parallel(2, stream=weir.Stream("cpu:inline")) as streams:
        for i, s in enumerate(streams):
            weir.host_task(order.append, i, stream=s)
            assert order[-1] == i
