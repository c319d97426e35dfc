"""Threads that use the same objects at once: under the interpreter's lock, and without it in a free-threaded one."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from test_interpreter import expect_clean, run

THREADS = 8
ROUNDS = 1000
SECONDS = float(os.environ.get("WEIR_TEST_SECONDS", "2"))


def at_once(work: Callable[[int], None]) -> None:
    """Calls `work` with 0, 1, ... on as many threads, which begin together. Raises what one of them raised."""
    begin = threading.Barrier(THREADS)
    raised: list[BaseException] = []

    def body(number: int) -> None:
        begin.wait()
        try:
            work(number)
        except BaseException as why:  # raised again by the thread that waits
            raised.append(why)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if raised:
        raise raised[0]


@pytest.fixture
def switching() -> Iterator[None]:
    """The threads take the lock from each other all the time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_the_lock_stays_off_where_the_interpreter_has_none() -> None:
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    has_lock = run("import sys, weir\nprint(getattr(sys, '_is_gil_enabled', lambda: True)())").stdout.strip()
    assert has_lock == str(not is_free_threaded), f"{sys.version}: the module has to say that it needs no lock"


def test_o1_changes_of_one_array_by_all_are_all_there(device: weir.Device) -> None:
    x = weir.zeros(64, device=device)
    weir.current_stream(device).synchronize()

    def work(_number: int) -> None:
        mine = x
        with weir.Stream(device):
            for _ in range(100):
                mine += 1

    at_once(work)
    assert (x.numpy(copy=True) == THREADS * 100).all()


def test_d5_eight_threads_launch_wait_and_run_tasks_for_a_while(device: weir.Device) -> None:
    """Launches with the interpreter's lock, waits without it, and tasks that need it: none of them stops the others."""
    arrays = [weir.zeros(64, device=device) for _ in range(THREADS)]
    shared = weir.zeros(64, device=device)
    counts = [0] * THREADS
    ran = [0] * THREADS
    end = time.monotonic() + SECONDS

    def work(number: int) -> None:
        mine, all_of_them = arrays[number], shared

        def task() -> None:
            ran[number] += 1

        with weir.Stream(device) as stream:
            while time.monotonic() < end:
                counts[number] += 1
                mine += 1
                all_of_them += 1
                if counts[number] % 3 == 0:
                    weir.host_task(task, stream=stream)
                if counts[number] % 7 == 0:
                    stream.synchronize()
                if counts[number] % 31 == 0:
                    assert mine.numpy(copy=True)[0] == counts[number]
            stream.synchronize()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # the threads take the lock from each other all the time
    try:
        at_once(work)
    finally:
        sys.setswitchinterval(interval)
    assert min(counts) > 0
    assert ran == [count // 3 for count in counts]
    assert [float(one.numpy(copy=True)[0]) for one in arrays] == counts
    assert shared.numpy(copy=True)[63] == sum(counts)


def test_an_event_that_is_made_when_it_is_asked_for_is_made_once() -> None:
    x = weir.zeros(8)
    events = [weir.fill(x, 3.0) for _ in range(ROUNDS)]
    numbers: list[set[int]] = [set() for _ in range(ROUNDS)]
    begin = threading.Barrier(THREADS)

    def work(_number: int) -> None:
        for event, seen in zip(events, numbers, strict=True):
            begin.wait()
            seen.add(hash(event))

    at_once(work)
    assert [len(seen) for seen in numbers] == [1] * ROUNDS


def test_one_event_is_recorded_waited_for_and_asked_by_all(device: weir.Device) -> None:
    event = weir.Event(device)

    def work(number: int) -> None:
        s = weir.Stream(device)
        for _ in range(100):
            if number % 2 == 0:
                event.record(s)
            else:
                s.wait(event)
                event.wait()
            assert repr(event) != "" and event.device == device

    at_once(work)
    event.wait()
    assert event.done


def test_an_event_that_one_closes_is_whole_or_closed_to_the_others(device: weir.Device) -> None:
    s = weir.Stream(device)
    for _ in range(50):
        event = s.record()

        def work(number: int, event: weir.Event = event) -> None:
            try:
                if number == 0:
                    event.close()
                else:
                    event.wait()
            except weir.StateError as why:
                assert "closed" in str(why)

        at_once(work)
        assert not event


def test_one_plan_is_executed_by_all(device: weir.Device) -> None:
    values = np.arange(256) + 1j
    x = weir.array(values, device=device)
    with weir.fft.FFT(x) as plan:
        plan.plan()
        results: list[weir.Array] = []

        def work(_number: int) -> None:
            for _ in range(10):
                results.append(plan.execute())

        at_once(work)
    assert len(results) == THREADS * 10
    for one in results:
        np.testing.assert_allclose(one.numpy(), np.fft.fft(values), atol=1e-9)


def test_a_check_is_entered_by_one() -> None:
    reports = [weir.check() for _ in range(ROUNDS)]
    refused: list[list[str]] = [[] for _ in range(ROUNDS)]
    begin, end = threading.Barrier(THREADS), threading.Barrier(THREADS)

    def work(number: int) -> None:
        for report, texts in zip(reports, refused, strict=True):
            begin.wait()
            try:
                report.__enter__()
            except weir.StateError as why:
                texts.append(str(why))
            end.wait()
            if number == 0:
                report.__exit__(None, None, None)

    at_once(work)
    assert [len(texts) for texts in refused] == [THREADS - 1] * ROUNDS
    assert all("entered before" in text for texts in refused for text in texts)
    assert all(len(report) == 0 for report in reports)


@pytest.mark.usefixtures("switching")
def test_x7_a_pin_that_all_release_is_released_once() -> None:
    x = weir.zeros(64)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pins = [x.pin() for _ in range(ROUNDS)]

        def work(_number: int, pins: list[Any] = pins) -> None:
            for one in pins:
                one.release()

        at_once(work)
        assert all(one.released for one in pins)


@pytest.mark.usefixtures("switching")
def test_x6_a_borrow_is_entered_and_left_by_one() -> None:
    before = weir.current_stream()
    for _ in range(100):
        x, s = weir.zeros(64), weir.Stream()
        lent = weir.borrow(x, write=[x], stream=s)
        refused: list[str] = []
        inside: list[int] = []

        def work(number: int, lent: Any = lent, refused: list[str] = refused, inside: list[int] = inside) -> None:
            try:
                lent.__enter__()
            except weir.StateError as why:
                refused.append(str(why))
                return
            inside.append(number)
            lent.__exit__(None, None, None)
            assert weir.current_stream() == before

        at_once(work)
        assert (len(inside), len(refused)) == (1, THREADS - 1)
        assert all("entered once" in text for text in refused)


FIRST_USES = {
    "an export": "x.__dlpack__(stream=-1)",
    "a borrow": "weir.borrow(x).__enter__()",
    "an operation on what was exported": "weir.fill(x, 1)",
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES.keys())
def test_two_threads_may_be_the_first_to_need_a_module(cuda: weir.Device, use: str) -> None:
    """An import gives the interpreter's lock to the other thread, which then needs the same module."""
    if not CudaDriver().is_fake:
        pytest.skip("any driver shows it, and the fake one is there without a GPU")
    done = run(
        f"""
        import builtins, faulthandler, sys, threading, time, types, weir
        s = weir.Stream("cuda:0")
        theirs = types.SimpleNamespace(get_current_stream=lambda: s)
        x = weir.zeros(4, device="cuda:0")
        if "fill" in {use!r}:
            sys.modules["cupy"] = types.SimpleNamespace(cuda=theirs)
            sys.modules["cupy.cuda"] = theirs
            exported = x.__dlpack__(stream=-1)
        imported = builtins.__import__

        def slow(name, *given, **named):
            time.sleep(0.02)
            return imported(name, *given, **named)

        builtins.__import__ = slow
        threads = [threading.Thread(target=lambda: {use}) for _ in range(2)]
        faulthandler.dump_traceback_later(20, exit=True)
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        print("both")
        """
    )
    expect_clean(done, "both\n")


def test_a_launch_that_waits_for_room_in_the_drivers_queue_leaves_the_interpreter_to_others(cuda: weir.Device) -> None:
    if not CudaDriver().is_fake:
        pytest.skip("only the fake driver has gates in its own streams")
    done = run(
        """
        import threading
        import weir
        from cuda_driver import CudaDriver

        code = 'extern "C" __global__ void add_one(float* x, int n) { if (threadIdx.x < n) { x[threadIdx.x] += 1; } }'
        add_one = weir.Kernel(code, "add_one", "inout float* x, int n")
        driver = CudaDriver()
        s = weir.Stream("cuda:0")
        x = weir.zeros(32, "float32", stream=s)
        handle = s.handle
        s.synchronize()
        held = driver.hold(handle)

        def launch():
            for _ in range(3000):
                add_one.launch(1, 32, x, 32, stream=s)

        thread = threading.Thread(target=launch)
        thread.start()
        while driver.pending(handle) < 1024:
            pass
        assert thread.is_alive()
        driver.open(held)
        thread.join()
        print(x.numpy().tolist() == [3000.0] * 32)
        """
    )
    expect_clean(done, "True\n")
