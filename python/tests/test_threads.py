"""Threads that use the same objects at once: under the interpreter's lock, and without it in a free-threaded one."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable

import numpy as np
import weir
from test_interpreter import run

THREADS = 8


def at_once(work: Callable[[int], None]) -> None:
    """Calls `work` with 0, 1, ... on as many threads, which begin together. Raises what one of them raised."""
    begin = threading.Barrier(THREADS)
    raised: list[BaseException] = []

    def body(number: int) -> None:
        begin.wait()
        try:
            work(number)
        except BaseException as why:  # noqa: BLE001: told to the thread that waits
            raised.append(why)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if raised:
        raise raised[0]


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


def test_one_event_is_recorded_waited_for_and_asked_by_all(device: weir.Device) -> None:
    event = weir.Event(device)
    of_operation = weir.fill(weir.zeros(8, device=device), 3.0)
    numbers: list[int] = []

    def work(number: int) -> None:
        s = weir.Stream(device)
        for _ in range(100):
            if number % 2 == 0:
                event.record(s)
            else:
                s.wait(event)
                event.wait()
            assert repr(event) != "" and event.device == device
            of_operation.wait()
        numbers.append(hash(of_operation))

    at_once(work)
    event.wait()
    assert event.done and of_operation.done
    assert len(set(numbers)) == 1, "an event that is made when somebody asks is made once"


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
    report = weir.check()
    refused: list[str] = []

    def work(_number: int) -> None:
        try:
            report.__enter__()
        except weir.StateError as why:
            refused.append(str(why))

    at_once(work)
    report.__exit__(None, None, None)
    assert len(refused) == THREADS - 1
    assert all("entered before" in text for text in refused)
    assert len(report) == 0
