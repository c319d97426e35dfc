"""What operations use lives until they are over; the interpreter's lock never blocks them (L2, L3, D1, D3 to D5)."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest
import weir
from eventually import eventually
from test_interpreter import expect_clean, run
from weir.testing import Gate


class Thing:
    """An object whose end can be seen."""

    def __init__(self, on_end: Callable[[], object] | None = None) -> None:
        self.on_end = on_end

    def __del__(self) -> None:
        if self.on_end is not None:
            self.on_end()


def settle() -> None:
    """Releases what was dropped on threads that have no interpreter lock."""
    weir.Stream("cpu:inline").synchronize()
    gc.collect()


def use_temporary(s: weir.Stream) -> tuple[weir.Event, weir.Array]:
    """A temporary of the function, which its work uses after the return."""
    temporary = weir.full(1000, 3.0, stream=s)
    result = weir.zeros(1000, stream=s)
    return weir.copy(result, temporary, stream=s), result


def test_d3_l1_a_temporary_array_survives_the_return_without_a_word(device: weir.Device) -> None:
    s = weir.Stream(device)
    with Gate() as gate:
        gate.hold(s)
        if device.kind == "cpu":
            event, result = use_temporary(s)
        else:
            with s:
                event, result = use_temporary(s)
        gc.collect()
        with s:
            weir.zeros(1000)  # may not get the memory of the temporary too early
    event.wait()
    assert (result.numpy(copy=True) == 3).all()


# The three ways of L2, for objects that Weir knows nothing of.


def test_d3_first_way_wait(device: weir.Device) -> None:
    s = weir.Stream(device)
    ended: list[int] = []

    def work() -> None:
        thing = Thing(lambda: ended.append(1))
        weir.host_task(lambda: ended.append(0), stream=s).wait()
        del thing

    work()
    assert ended == [0, 1]


def test_d3_second_way_an_event_that_keeps(device: weir.Device) -> None:
    s = weir.Stream(device)
    ended: list[int] = []

    def work() -> weir.Event:
        thing = Thing(lambda: ended.append(1))
        return weir.host_task(lambda: ended.append(0), stream=s).keeps(thing)

    with Gate() as gate:
        gate.hold(s)
        event = work()
        settle()
        assert ended == []
    event.wait()
    s.synchronize()
    eventually(lambda: ended == [0, 1])


def test_d3_third_way_keep_alive(device: weir.Device) -> None:
    s = weir.Stream(device)
    ended: list[int] = []

    def work() -> None:
        things = [Thing(lambda: ended.append(1)), Thing(lambda: ended.append(1))]
        event = weir.host_task(lambda: ended.append(0), stream=s)
        weir.keep_alive(things, after=event)

    with Gate() as gate:
        gate.hold(s)
        work()
        settle()
        assert ended == []
    s.synchronize()
    eventually(lambda: ended == [0, 1, 1])


def test_d4_control_what_nobody_keeps_is_gone_at_once() -> None:
    ended: list[int] = []
    with Gate() as gate:
        s = weir.Stream()
        gate.hold(s)
        thing = Thing(lambda: ended.append(1))
        weir.host_task(lambda: None, stream=s)
        del thing
        assert ended == [1]


def test_d4_kept_objects_are_let_go_of_exactly_once_from_several_threads(device: weir.Device) -> None:
    ended: list[int] = []
    streams = [weir.Stream(device) for _ in range(4)]
    gate = Gate()
    for s in streams:
        gate.hold(s)

    def keep(s: weir.Stream, base: int) -> None:
        for i in range(50):
            event = weir.host_task(lambda: None, stream=s)
            weir.keep_alive(Thing(lambda i=i: ended.append(base + i)), after=event)  # type: ignore[misc]

    threads = [threading.Thread(target=keep, args=(s, 50 * n)) for n, s in enumerate(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settle()
    assert ended == []
    gate.open()
    for s in streams:
        s.synchronize()
    eventually(lambda: len(ended) >= 200)
    assert sorted(ended) == list(range(200))


def test_d4_a_failure_at_submission_undoes_the_references() -> None:
    event = weir.Stream().record()
    event.close()
    thing = Thing()
    alive = weakref.ref(thing)
    with pytest.raises(weir.StateError):
        weir.keep_alive([thing], after=event)
    with pytest.raises(weir.StateError):
        event.keeps(thing)
    closed = weir.Stream()
    closed.close()
    with pytest.raises(weir.StateError):
        weir.host_task(lambda given: None, thing, stream=closed)
    del thing
    settle()
    assert alive() is None


def test_d4_what_an_operation_that_failed_kept_is_let_go_of() -> None:
    s = weir.Stream()
    ended: list[int] = []

    def broken(thing: Thing) -> None:
        raise ValueError

    event = weir.host_task(broken, Thing(lambda: ended.append(1)), stream=s)
    event.keeps(Thing(lambda: ended.append(2)))
    with pytest.raises(weir.OperationError):
        event.wait()
    eventually(lambda: 2 in ended)


def test_d1_an_empty_list_of_events_keeps_operands_alive(device: weir.Device) -> None:
    s = weir.Stream(device)
    thing = Thing()
    alive = weakref.ref(thing)
    with Gate() as gate:
        gate.hold(s)
        weir.host_task(lambda given: None, thing, stream=s, after=[])
        del thing
        settle()
        assert alive() is not None
    s.synchronize()
    eventually(lambda: alive() is None)


def test_d5_events_handed_from_thread_to_thread_order(device: weir.Device) -> None:
    order: list[str] = []
    gate = Gate()
    handed: list[weir.Event] = []
    has_one = threading.Event()

    def first() -> None:
        with weir.Stream(device) as s:
            gate.hold(s)
            handed.append(weir.host_task(order.append, "first", stream=s))
            has_one.set()

    def second() -> None:
        has_one.wait()
        with weir.Stream(device) as s:
            handed.append(weir.host_task(order.append, "second", stream=s, after=handed[0]))

    def independent() -> None:
        with weir.Stream(device) as s:
            weir.host_task(order.append, "independent", stream=s).wait()

    for run_thread in (first, second, independent):
        thread = threading.Thread(target=run_thread)
        thread.start()
        thread.join()
    assert order == ["independent"]
    gate.open()
    handed[1].wait()
    assert order == ["independent", "first", "second"]


def test_l3_a_host_task_runs_while_the_main_thread_waits_outside_of_weir() -> None:
    """A wait of Python's own releases the interpreter lock."""
    done = threading.Event()
    weir.host_task(done.set)
    assert done.wait(60)


def test_l3_the_main_thread_holds_the_lock_in_a_call_of_somebody_else() -> None:
    """A call that never releases the lock delays the task and nothing more."""
    done = run(
        """
        import ctypes, weir
        from weir.testing import Gate
        held = ctypes.PyDLL(None).usleep  # PyDLL keeps the interpreter's lock
        order, s, gate = [], weir.Stream(), Gate()
        gate.hold(s)
        event = weir.host_task(order.append, "task", stream=s)
        gate.open()
        held(100000)
        order.append("main")
        event.wait()
        print(sorted(order))
        """
    )
    expect_clean(done, "['main', 'task']\n")


def test_l3_garbage_collection_may_use_weir() -> None:
    s = weir.Stream()
    ended: list[str] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            weir.host_task(ended.append, "task", stream=s).wait()
            s.synchronize()
            ended.append("end")

    for _ in range(10):
        Cycle()
    gc.collect()
    assert ended == ["task", "end"] * 10


def test_l3_a_destructor_that_a_task_brings_about_may_wait_for_its_stream() -> None:
    s = weir.Stream()
    ended: list[str] = []

    def end() -> None:
        s.synchronize()
        ended.append("end")

    weir.host_task(lambda given: None, Thing(end), stream=s)
    weir.host_task(lambda: Thing(end), stream=s)
    s.synchronize()
    eventually(lambda: len(ended) == 2)


def test_l3_atexit_may_use_weir() -> None:
    done = run(
        """
        import atexit, weir
        s = weir.Stream()
        atexit.register(lambda: weir.host_task(print, "at exit", stream=s, wait=True))
        """
    )
    expect_clean(done, "at exit\n")


def test_l3_pending_tasks_run_before_the_interpreter_ends() -> None:
    done = run(
        """
        import weir
        streams = [weir.Stream() for _ in range(4)]
        x = weir.zeros(100)
        for s in streams:
            for _ in range(20):
                weir.host_task(lambda values: values.__iadd__(1), x, stream=s)
        weir.host_task(lambda values: print(values[0]), weir.In(x))
        """
    )
    expect_clean(done, "80.0\n")


def test_l3_a_task_that_never_begins_is_told_of_and_left() -> None:
    done = run(
        """
        import weir
        from weir.testing import Gate
        s, gate = weir.Stream(), Gate()
        gate.hold(s)
        weir.host_task(print, "never", stream=s)
        import builtins
        builtins.gate = gate  # outlives everything
        """
    )
    assert done.returncode == 0
    assert done.stdout == ""
    assert "host tasks that were enqueued have not begun" in done.stderr
    assert done.stderr.count("\n") == 1


def test_l3_objects_of_weir_may_outlive_everything() -> None:
    done = run(
        """
        import builtins, sys, weir
        s = weir.Stream()
        builtins.kept = [s, weir.zeros(10, stream=s), weir.Event(), weir.fft.FFT(weir.ones(4)), weir.testing.Gate(),
                         weir.parallel(2), weir.memory.counting(), weir.In(weir.ones(3))]
        sys.modules["kept"] = builtins.kept
        class Late:
            def __del__(self):
                weir.zeros(3) + 1
        builtins.late = Late()
        def broken(values):
            raise ValueError("kept")
        e = weir.host_task(broken, weir.zeros(3))
        try:
            e.wait()
        except weir.OperationError as error:
            builtins.error = error
        """
    )
    expect_clean(done)


def test_l3_daemon_threads_that_wait_do_not_hinder_the_end() -> None:
    done = run(
        """
        import atexit
        atexit.register(lambda: gate.open())  # after Weir's own end: the threads come back too late
        import threading, weir
        from weir.testing import Gate
        s, gate = weir.Stream(), Gate()
        gate.hold(s)
        event = s.record()
        for _ in range(8):
            threading.Thread(target=event.wait, daemon=True).start()
        """
    )
    expect_clean(done)
