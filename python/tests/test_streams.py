"""Streams, events, the current stream: C1, C5, S2 to S5, S7 to S9."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import pytest
import weir
from eventually import eventually
from interrupting import interrupt
from weir.testing import Gate


def test_c1_a_stream_is_made_used_and_closed(any_device: weir.Device) -> None:
    stream = weir.Stream(any_device, name="load")
    assert stream
    assert stream.device == any_device
    assert stream.name == "load"
    assert stream.done
    stream.synchronize()
    stream.close()
    stream.close()
    assert not stream
    for use in (stream.record, lambda: stream.wait(weir.Event()), stream.__enter__):
        with pytest.raises(weir.StateError, match="closed"):
            use()
    with pytest.raises(weir.StateError, match="closed"):
        weir.Stream(any_device).wait(stream)


def test_s6_a_stream_remembers_whether_it_is_blocking(device: weir.Device) -> None:
    assert weir.Stream(device, blocking=True).blocking
    assert not weir.Stream(device).blocking


def test_c1_the_aliases_are_the_same() -> None:
    stream = weir.Stream()
    event = stream.record_event()
    stream.wait_event(event)
    stream.wait_stream(weir.Stream())
    assert stream.query() is True
    stream.sync()
    assert (stream.cuda_stream, stream.ptr, stream.handle) == (0, 0, 0)
    assert event.handle == 0
    assert stream.__cuda_stream__() == (0, 0)
    stream.destroy()
    assert not stream
    event.destroy()
    assert not event
    assert weir.create_stream("sim:0", name="x").name == "x"
    assert weir.create_event("sim:0").device == weir.Device("sim:0")
    assert weir.Device("sim:0").create_stream(priority=-1).priority == -1


def test_s9_objects_print_what_they_are(device: weir.Device) -> None:
    stream = weir.Stream(device, priority=-1, name="load")
    assert repr(stream).startswith(f"<weir.Stream {device.name} ")
    assert '"load"' in repr(stream)
    assert "priority=-1 owned>" in repr(stream)
    stream.close()
    assert "closed>" in repr(stream)
    assert repr(device) == f"<weir.Device {device.name}>"
    event = weir.Event(device, timing=True)
    assert repr(event).startswith("<weir.Event #")
    event.close()
    assert repr(event) == "<weir.Event closed>"


def test_s3_done_never_blocks_and_synchronize_does(device: weir.Device) -> None:
    stream = weir.Stream(device)
    with Gate() as gate:
        gate.hold(stream)
        event = stream.record()
        assert not stream.done
        assert not event.done
    event.wait()
    assert event.done
    stream.synchronize()
    assert stream.done


def test_s3_a_wait_is_device_side(device: weir.Device) -> None:
    first, second = weir.Stream(device), weir.Stream(device)
    with Gate() as gate:
        gate.hold(first)
        second.wait(first)
        after = second.record()
        assert not after.done
        third = weir.Stream(device)
        third.record().wait()  # the control: what did not wait goes on
    after.synchronize()


def test_s2_an_event_holds_the_moment_of_its_record(device: weir.Device) -> None:
    stream = weir.Stream(device)
    event = stream.record()
    with Gate() as gate:
        gate.hold(stream)
        stream.record()
        event.wait()  # what came later does not change it
        assert stream.record(event) is event  # recorded again, it holds the later moment
        assert not event.done
    event.wait()


def test_s2_an_event_never_recorded_is_complete() -> None:
    event = weir.Event()
    assert event.done
    event.wait()
    weir.Stream().wait(event)


def test_an_event_records_on_the_current_stream_by_default(device: weir.Device) -> None:
    stream = weir.Stream(device)
    event = weir.Event()
    with Gate() as gate:
        gate.hold(stream)
        with stream:
            event.record()
        assert event.device == device
        assert not event.done
    event.synchronize()


def test_a_wait_with_a_timeout_says_whether_the_event_is_over(device: weir.Device) -> None:
    s = weir.Stream(device)
    with Gate() as gate:
        gate.hold(s)
        e = s.record()
        assert e.wait(timeout=0) is False
        for _ in range(100):
            assert e.wait(timeout=0.0005) is False
        # The GIL is free meanwhile: another thread opens the gate.
        opener = threading.Thread(target=gate.open)
        opener.start()
        assert e.wait(timeout=300) is True
        opener.join()
    assert e.wait(timeout=0) is True
    assert e.wait(timeout=float("inf")) is True
    assert e.wait(None, timeout=None) is True
    assert e.wait(weir.Stream(device)) is None
    assert weir.Event().wait(timeout=0) is True


def test_k4_a_wait_with_a_timeout_raises_what_failed() -> None:
    def fails() -> None:
        raise KeyError

    failed = weir.host_task(fails)
    for timeout in (300, 0):
        with pytest.raises(weir.OperationError, match="fails"):
            failed.wait(timeout=timeout)


def test_a_wait_with_a_timeout_is_interruptible(device: weir.Device) -> None:
    s = weir.Stream(device)
    with Gate() as gate:
        gate.hold(s)
        e = s.record()
        interrupt(lambda: e.wait(timeout=300))
        assert not e.done


@pytest.mark.parametrize("timeout", [-1, float("nan"), -0.5])
def test_x10_a_timeout_is_a_number_of_seconds(timeout: float) -> None:
    with pytest.raises(weir.ArgumentError, match="pass seconds, from 0 on, or None"):
        weir.Event().wait(timeout=timeout)


def test_x10_a_timeout_is_for_the_host_alone() -> None:
    with pytest.raises(weir.ArgumentError, match="a stream and timeout="):
        weir.Event().wait(weir.Stream(), timeout=1)
    with pytest.raises(weir.ArgumentTypeError, match="timeout is 'long': pass a number"):
        weir.Event().wait(timeout="long")  # type: ignore[arg-type]


def test_a_closed_event_is_refused() -> None:
    stream = weir.Stream()
    with stream.record() as event:
        assert event
    assert not event
    for use in (event.wait, event.record, lambda: event.done, lambda: stream.wait(event), lambda: stream.record(event)):
        with pytest.raises(weir.StateError, match="closed"):
            use()


def test_elapsed_time_is_in_milliseconds(device: weir.Device) -> None:
    stream = weir.Stream(device)
    start = stream.record(timing=True)
    end = stream.record(timing=True)
    stream.synchronize()
    assert start.timing
    assert 0 <= start.elapsed_time(end) < 60_000
    assert start.elapsed_time(end) == -end.elapsed_time(start)
    with pytest.raises(weir.ArgumentError, match=r"weir.Event\(timing=True\)"):
        stream.record(weir.Event(device), timing=True)
    assert stream.record(weir.Event(device, timing=True), timing=True).timing
    with pytest.raises(weir.StateError, match="timing"):
        start.elapsed_time(stream.record())


def test_s7_the_current_stream_nests_and_comes_back(device: weir.Device) -> None:
    default = weir.current_stream(device)
    one, two = weir.Stream(device), weir.Stream(device)
    with one:
        assert weir.current_stream(device) is one
        assert weir.current_stream() is one
        with two:
            assert weir.current_stream(device) is two
            with one:
                assert weir.current_stream(device) is one
            assert weir.current_stream(device) is two
        assert weir.current_stream(device) is one
        with pytest.raises(KeyError), two:
            raise KeyError
        assert weir.current_stream(device) is one
    assert weir.current_stream(device) == default


def test_s7_each_device_has_its_own_current_stream() -> None:
    cpu, sim = weir.Stream("cpu"), weir.Stream("sim:0")
    with cpu, sim:
        assert weir.current_stream("cpu") is cpu
        assert weir.current_stream("sim:0") is sim
        assert weir.current_stream() is sim  # the innermost one's device
        assert weir.current_stream("sim:1") not in (cpu, sim)
    assert weir.current_stream().device == weir.Device("cpu")


def test_c5_the_current_stream_belongs_to_its_thread(device: weir.Device) -> None:
    seen = []
    with weir.Stream(device) as stream:
        thread = threading.Thread(target=lambda: seen.append(weir.current_stream(device)))
        thread.start()
        thread.join()
        assert seen[0] != stream
    assert seen[0] == weir.current_stream(device)  # all threads share the default stream


def test_with_must_end_on_its_thread_and_innermost_first() -> None:
    one, two = weir.Stream(), weir.Stream()
    one.__enter__()
    two.__enter__()
    with pytest.raises(weir.StateError, match="innermost"):
        one.__exit__(None, None, None)
    assert weir.current_stream() is two
    two.__exit__(None, None, None)
    failures = []

    def leave() -> None:
        try:
            one.__exit__(None, None, None)
        except weir.StateError as error:
            failures.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert len(failures) == 1
    one.__exit__(None, None, None)


def test_s5_streams_are_equal_if_they_are_the_same_stream(device: weir.Device) -> None:
    stream = weir.Stream(device)
    assert stream == weir.adopt(stream)
    assert stream != weir.Stream(device)
    assert stream != "stream"
    assert len({stream, weir.adopt(stream), weir.Stream(device)}) == 2
    assert weir.current_stream(device) == weir.current_stream(device)


def test_s4_a_busy_stream_may_be_dropped(device: weir.Device) -> None:
    stream = weir.Stream(device)
    seen = weakref.ref(stream)
    with Gate() as gate:
        gate.hold(stream)
        event = stream.record()
        del stream
        gc.collect()
        assert seen() is None
        assert not event.done
    event.wait()


def test_events_are_told_apart() -> None:
    one, two = weir.Event(), weir.Event()
    assert one == one
    assert one != two
    assert len({one, two}) == 2


def test_pickling_and_copying_are_refused_with_a_reason() -> None:
    for thing in (weir.Stream(), weir.Event()):
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(weir.ArgumentTypeError, match="belongs to this process"):
                use(thing)
    device = weir.Device("sim:3")
    assert pickle.loads(pickle.dumps(device)) == device


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: weir.Device("gpu"), weir.ArgumentError, "sim:0"),
        (lambda: weir.Device("sim:99"), weir.ArgumentError, "sim"),
        (lambda: weir.Stream(3), weir.ArgumentTypeError, "weir.Device"),
        (lambda: weir.Stream().wait("now"), weir.ArgumentTypeError, "weir.Stream"),
        (lambda: weir.Stream().record(3), weir.ArgumentTypeError, "weir.Event"),
        (lambda: weir.adopt(None), weir.ArgumentTypeError, "no stream"),
        (lambda: weir.adopt(True), weir.ArgumentTypeError, "no stream"),
        (lambda: weir.adopt(-1), weir.ArgumentError, "handle"),
        (lambda: weir.adopt(1 << 70), weir.ArgumentError, "handle"),
        (lambda: weir.adopt(7, device="cpu"), weir.ArgumentError, "cpu"),
        (lambda: weir.stream_of([1]), weir.ArgumentTypeError, "no stream"),
    ],
)
def test_x10_wrong_arguments_say_what_is_wanted(call, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()


def test_x10_the_tree_of_errors() -> None:
    for name, builtin in {
        "ArgumentError": ValueError,
        "ArgumentTypeError": TypeError,
        "StateError": RuntimeError,
        "OutOfMemory": MemoryError,
        "ExchangeError": BufferError,
        "CopyError": ValueError,
        "OperationError": RuntimeError,
        "RaceError": RuntimeError,
        "DeviceError": RuntimeError,
        "MissingLibrary": ImportError,
    }.items():
        error = getattr(weir, name)
        assert issubclass(error, weir.Error), name
        assert issubclass(error, builtin), name
        assert error.__module__ == "weir", name
    assert issubclass(weir.CopyError, weir.ExchangeError)


def test_c9_device_wide_synchronisation_waits_for_user_streams(device: weir.Device) -> None:
    streams = [weir.Stream(device) for _ in range(3)]
    gate = Gate()
    for stream in streams:
        gate.hold(stream)
    events = [stream.record() for stream in streams]
    waits = threading.Thread(target=device.synchronize)
    waits.start()
    gate.open()
    waits.join()
    assert all(event.done for event in events)


def test_keep_alive_and_keeps_let_go_after_the_event(device: weir.Device) -> None:
    class Thing:
        pass

    for keep in (lambda thing, event: weir.keep_alive([thing], after=event), lambda thing, event: event.keeps(thing)):
        stream = weir.Stream(device)
        thing = Thing()
        seen = weakref.ref(thing)
        with Gate() as gate:
            gate.hold(stream)
            event = stream.record()
            keep(thing, event)
            del thing
            gc.collect()
            assert seen() is not None
        event.wait()
        eventually(lambda seen=seen, event=event: event.done and seen() is None)  # by the thread that sees the end


def test_many_streams_and_events_are_made_and_dropped(device: weir.Device) -> None:
    for _ in range(2_000):
        stream = weir.Stream(device)
        stream.record()
        stream.wait(stream.record())


def test_x10_messages_name_calls_of_python() -> None:
    stream = weir.Stream()
    stream.close()
    with pytest.raises(weir.StateError, match=r"weir\.Stream\(device\)"):
        stream.record()
    assert "<weir.Event" in str(weir.explain(weir.Stream().record()))


def test_events_that_are_kept_stay_what_they_are() -> None:
    """An event object without references may be reused for another event; one with a reference never is."""
    s = weir.Stream("cpu")
    kept, seen, weak = [], set(), []
    for i in range(100):
        event = s.record()
        seen.add(hash(event))
        if i % 3 == 0:
            kept.append((event, hash(event)))
        elif i % 3 == 1:
            weak.append(weakref.ref(event))
    assert len(seen) == 100
    assert all(hash(event) == was for event, was in kept)
    del event
    s.record()
    s.record()
    assert all(one() is None for one in weak), "a weak reference never shows another event"


def test_an_event_that_was_closed_is_not_handed_out() -> None:
    s = weir.Stream("cpu")
    s.record().close()
    assert s.record()


def test_a_weak_reference_to_a_dropped_event_never_shows_the_next_one() -> None:
    s = weir.Stream("cpu")
    dropped = weakref.ref(s.record())
    later = s.record()
    assert dropped() is not later
    assert dropped() is None


def test_synchronize_waits_for_every_device_that_is_open() -> None:
    streams = [weir.Stream(name) for name in ("cpu", "sim:0", "sim:1")]
    arrays = []
    gates = []
    for stream in streams:
        gate = Gate()
        gate.hold(stream)
        gates.append(gate)
        x = weir.empty(1000, device=stream.device, stream=stream)
        weir.fill(x, 3, stream=stream)
        arrays.append(x)
    ended = threading.Event()

    def wait() -> None:
        weir.synchronize()
        ended.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    for gate, stream in zip(gates, streams, strict=True):
        assert not ended.is_set(), f"synchronize() did not wait for {stream.device}"
        gate.open()
    waiting.join()
    assert all(stream.done for stream in streams)


def test_synchronize_of_one_device_does_not_wait_for_another() -> None:
    held, other = weir.Stream("sim:0"), weir.Stream("sim:1")
    with Gate() as gate:
        gate.hold(held)
        x = weir.empty(10, device="sim:1", stream=other)
        weir.fill(x, 1, stream=other)
        weir.synchronize("sim:1")
        assert other.done
        assert not held.done
        gate.open()
    weir.synchronize("sim:0")
    assert held.done


def test_synchronize_raises_a_failure_after_it_has_waited_for_all() -> None:
    def fail() -> None:
        raise ValueError("wrong on purpose")

    first, last = weir.Stream("cpu"), weir.Stream("sim:0")
    gate = Gate()
    gate.hold(last)
    weir.host_task(fail, stream=first)
    gate.open()
    with pytest.raises(weir.OperationError, match="wrong on purpose"):
        weir.synchronize()
    assert last.done
    weir.synchronize()
    with pytest.raises(weir.ArgumentTypeError, match="device"):
        weir.synchronize(7)  # type: ignore[arg-type]
