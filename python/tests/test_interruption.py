"""Ctrl-C ends calls that wait although they only put work into streams. What they were to enqueue is enqueued all the
same, or not at all; nothing is lost, and nothing is kept."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import weir
from interrupting import interrupt
from weir.testing import Gate


class Thing:
    """Something to refer to."""


@pytest.mark.parametrize("times", [1, 2])
def test_work_on_what_the_host_sees(times: int) -> None:
    """X7: enqueueing it returns when it is over. Each of the calls that were interrupted has its effect, once."""
    s = weir.Stream()
    x = weir.zeros(2, stream=s)
    view = x.numpy()
    with Gate() as gate:
        gate.hold(s)
        for _ in range(times):
            with s:
                interrupt(lambda: x.__iadd__(1))
        assert view.tolist() == [0, 0]
    s.synchronize()
    assert view.tolist() == [times, times]


def test_kept_arguments() -> None:
    """L2: the work still has what it uses, and releases it at its end."""
    s = weir.Stream()
    x = weir.zeros(2, stream=s)
    view = x.numpy()
    things = [Thing()]
    dead = weakref.ref(things[0])
    seen: list[bool] = []

    def task(_x: object, it: Thing) -> None:
        seen.append(it is dead())

    with Gate() as gate:
        gate.hold(s)
        interrupt(lambda: weir.host_task(task, x, things[0], stream=s))
        things.clear()
        gc.collect()
        assert dead() is not None
        assert seen == []
    s.synchronize()
    weir.current_stream()
    gc.collect()
    assert seen == [True]
    assert dead() is None
    assert view.tolist() == [0, 0]


def drop_two_that_are_in_use(until: threading.Event, device: weir.Device, nbytes: int) -> None:
    """No stream is ordered after both: what needs the memory of the two together has to wait on the host. Weir does
    not see what the tasks wait for: a call that needs memory behind a closed gate is refused instead (L6)."""

    def blocked() -> None:
        until.wait()

    for _ in range(2):
        s = weir.Stream(device)
        x = weir.empty(nbytes, dtype="uint8", stream=s)
        weir.host_task(blocked, stream=s)
        weir.fill(x, 1, stream=s)


@contextlib.contextmanager
def held() -> Iterator[threading.Event]:
    """An event that is set at the end of the block, so that no task is left waiting for it."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def test_allocation_at_the_limit() -> None:
    """L1: memory that is dropped while work uses it is waited for, if there is no other. Nothing is taken."""
    with weir.testing.simulated("sim:5", memory=1 << 20) as device:
        s = weir.Stream(device)
        with held() as until:
            drop_two_that_are_in_use(until, device, 3 << 17)
            for _ in range(3):
                interrupt(lambda: weir.empty(3 << 18, dtype="uint8", stream=s))
            now = weir.memory.stats(device)
            assert now["live"] == 0
            assert now["pending"] + now["cached"] == now["limit"]
        y = weir.full(3 << 18, 2, dtype="uint8", stream=s)
        assert y[-1].item() == 2
        del y
        device.synchronize()


def test_allocation_within_an_operation() -> None:
    """The operation that was to have the memory is not enqueued, and what it reads is as it was."""
    with weir.testing.simulated("sim:5", memory=1 << 20) as device:
        s = weir.Stream(device)
        x = weir.ones(3 << 14, dtype="uint8", stream=s)
        s.synchronize()
        with held() as until:
            drop_two_that_are_in_use(until, device, 3 << 17)
            with s:
                interrupt(lambda: x.astype("complex128"))
            assert s.done
        assert x.tolist() == [1] * (3 << 14)
        assert x.astype("complex128").tolist() == [1] * (3 << 14)


@pytest.mark.parametrize("call", ["copy", "host task", "wait", "fft", "arithmetic"])
def test_streams_that_run_in_the_call(call: str) -> None:
    """S8: an operation of cpu:inline waits for other streams in the call. Where that is ended, it runs later all the
    same, and what is enqueued after it runs after it."""
    s, inline = weir.Stream(), weir.Stream("cpu:inline")
    x = weir.zeros(8, stream=s)
    y = weir.zeros(8, stream=inline)
    order: list[str] = []
    with Gate() as gate:
        gate.hold(s)
        weir.fill(x, 3, stream=s)

        def enqueue() -> None:
            if call == "copy":
                weir.copy(y, x, stream=inline)
            elif call == "host task":
                weir.host_task(lambda to, values: np.copyto(to, values), weir.Out(y), weir.In(x), stream=inline)
            elif call == "wait":
                inline.wait(s)
            elif call == "fft":
                weir.fft.fft(x, stream=inline)
            else:
                with inline:
                    y.__iadd__(x)

        interrupt(enqueue)
        interrupt(lambda: weir.host_task(lambda: order.append("after"), stream=inline))
        assert order == []
    inline.synchronize()
    assert order == ["after"]
    assert y.tolist() == ([0] * 8 if call in ("wait", "fft") else [3] * 8)
    # The queue works as before.
    weir.fill(y, 5, stream=inline)
    assert y.ready
    assert y.tolist() == [5] * 8


def test_several_streams_that_run_in_the_call() -> None:
    """What an operation of cpu:inline enqueues into other streams is left to the same thread, in its order."""
    s = weir.Stream()
    a, b = weir.Stream("cpu:inline"), weir.Stream("cpu:inline")
    order: list[int] = []
    with Gate() as gate:
        gate.hold(s)
        held = s.record()

        def outer() -> None:
            order.append(0)
            for stream, number in ((b, 1), (a, 2), (b, 3)):
                weir.host_task(order.append, number, stream=stream, after=[held])

        interrupt(lambda: weir.host_task(outer, stream=a))
        assert order == [0]
    a.synchronize()
    b.synchronize()
    assert order == [0, 1, 2, 3]


def test_a_virtual_clock() -> None:
    """Where a thread that waits drives a device, and the device waits for a stream of the CPU."""
    s = weir.Stream()
    with weir.testing.simulated("sim:0", virtual_clock=True) as device:
        t = weir.Stream(device)
        with Gate() as gate:
            gate.hold(s)
            t.wait(s.record())
            x = weir.full(2, 3, stream=t)
            interrupt(t.synchronize)
            interrupt(x.tolist)
        assert x.tolist() == [3, 3]


def test_the_end_of_a_simulation() -> None:
    """It waits for what is pending on the device; the simulation stays until that is over."""
    device = weir.testing.simulated("sim:0", seed=3)
    device.__enter__()
    with Gate() as gate:
        s = weir.Stream("sim:0")
        gate.hold(s)
        x = weir.full(2, 3, stream=s)
        interrupt(lambda: device.__exit__(None, None, None))
        with pytest.raises(weir.StateError, match="in use"):
            device.__enter__()
    device.__exit__(None, None, None)
    assert x.tolist() == [3, 3]


def test_a_parallel_block() -> None:
    """Its end does not wait, and a stream joins it by waiting."""
    s = weir.Stream()
    with Gate() as gate:
        with s, weir.parallel(2) as branches:
            gate.hold(branches[0])
        interrupt(s.synchronize)
    s.synchronize()


@pytest.mark.parametrize("call", ["wait", "fill", "record"])
def test_cuda_streams_whose_handle_others_use(cuda: weir.Device, call: str) -> None:
    """O9: enqueueing there blocks while the work depends on another device's."""
    s = weir.Stream()
    t = weir.Stream(cuda)
    x = weir.zeros(2, device=cuda, stream=t)
    t.synchronize()
    assert t.handle != 0
    with Gate() as gate:
        gate.hold(s)
        held = s.record()
        interrupt(lambda: t.wait(held))
        if call == "fill":
            interrupt(lambda: weir.fill(x, 3, stream=t))
        elif call == "record":
            interrupt(lambda: t.record())
        assert not t.done
    weir.fill(x, 3, stream=t)
    t.synchronize()
    assert x.tolist() == [3, 3]
