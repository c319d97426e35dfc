"""The race detector in Python: which lines race, with both stacks, and what mends it (rule V1)."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import threading
import warnings
from typing import Any, Literal

import pytest
import weir
from weir.testing import Gate


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


class Program:
    """One stream fills an array, another one copies it."""

    def __init__(self, device: weir.Device) -> None:
        self.load = weir.Stream(device, name="load")
        self.compute = weir.Stream(device, name="compute")
        self.x = weir.zeros(8, "float32", stream=self.load)
        self.y = weir.zeros(8, "float32", stream=self.compute)
        self.load.synchronize()
        self.compute.synchronize()
        self.fill_line = self.copy_line = 0

    def fill(self) -> None:
        weir.fill(self.x, 3, stream=self.load)
        self.fill_line = here() - 1

    def copy(self) -> None:
        weir.copy(self.y, self.x, stream=self.compute)
        self.copy_line = here() - 1

    def run(self, mended: bool = False) -> None:
        self.fill()
        if mended:
            e = self.load.record()
            self.compute.wait(e)
        self.copy()


def test_v1_both_lines_and_the_mend_in_python(device: weir.Device) -> None:
    program = Program(device)
    with weir.check(assume="manual") as report:
        program.run()
    assert len(report) == 1
    race = report.races[0]
    assert (race.kind, race.certainty, race.times) == ("RAW", "definite", 1)
    first, second = race.first, race.second
    assert (first.file, first.line, first.stream, first.mode) == (__file__, program.fill_line, "load", "write")
    assert (second.file, second.line, second.stream, second.mode) == (__file__, program.copy_line, "compute", "read")
    assert first.range == second.range == (0, 32)
    assert "of 32 bytes" in first.array
    assert race.mend == (
        f"e = load.record()  # after test_check.py:{program.fill_line}\n"
        f"compute.wait(e)    # before test_check.py:{program.copy_line}"
    )
    assert race.mend in str(report).replace("        ", "")
    assert str(race.kind) in str(race)


def test_v1_a_call_that_was_not_given_its_stream(device: weir.Device) -> None:
    """The kind says so, and the reason says which call it was."""
    s = weir.Stream(device, name="s")
    x, y = weir.zeros(8, stream=s), weir.zeros(8, stream=s)
    s.synchronize()
    with weir.check(assume="manual") as report:
        weir.fill(x, 3)
        line = here() - 1
        weir.copy(y, x, stream=s)
        with s:
            weir.fill(y, 3)
    assert [race.kind for race in report] == ["default-stream"]
    assert report[0].reason == (
        f"What test_check.py:{line} enqueued runs on Weir's default stream, where work goes that is given no stream."
    )
    assert report[0].reason in str(report)
    assert report[0].mend.startswith("e = stream_default.record()")
    device.synchronize()


def test_v1_cudas_default_streams(cuda: weir.Device) -> None:
    """The legacy one is ordered with blocking streams, not with others (S6)."""
    kinds = []
    for blocking in (True, False):
        s, legacy = weir.Stream(cuda, blocking=blocking), weir.adopt(1, device=cuda)
        x, y = weir.zeros(8, stream=s), weir.zeros(8, stream=s)
        s.synchronize()
        with weir.check(assume="manual") as report:
            weir.fill(x, 3, stream=legacy)
            weir.copy(y, x, stream=s)
        kinds.append([race.kind for race in report])
        cuda.synchronize()
    assert kinds == [[], ["default-stream"]]
    assert "the legacy default stream, which the driver orders with blocking streams only" in report[0].reason


def test_v1_the_mended_program_is_silent(device: weir.Device) -> None:
    program = Program(device)
    with weir.check(assume="manual") as report:
        program.run(mended=True)
    assert len(report) == 0, str(report)
    assert not report.unseen


def test_v1_what_weir_orders_is_no_race(device: weir.Device) -> None:
    program = Program(device)
    with weir.check() as report:
        program.run()
    assert not report.races
    with weir.ordering("manual"), weir.check() as report:
        program.run()
    assert len(report) == 1


def test_v1_the_program_stays_safe(device: weir.Device) -> None:
    program = Program(device)
    with Gate() as gate, weir.ordering("manual"), weir.check() as report:
        gate.hold(program.load)
        program.run()
        assert not program.compute.done, "it waits for what is held"
        gate.open()
        program.load.synchronize()
        program.compute.synchronize()
    assert len(report) == 1
    assert program.y.numpy(copy=True).tolist() == [3.0] * 8


def test_v1_the_whole_stacks(device: weir.Device) -> None:
    program = Program(device)
    with weir.check(assume="manual") as report:
        program.run()
        line = here() - 1
    for access, function in ((report[0].first, "fill"), (report[0].second, "copy")):
        names = [name.rpartition(".")[2] for _, _, name in access.stack]
        assert names[:3] == [function, "run", "test_v1_the_whole_stacks"]
        assert access.stack[2][:2] == (__file__, line)
        assert access.stack[0][:2] == (access.file, access.line)
        assert len(access.stack) > 3, "up to the program's own start"


def test_v1_one_line_called_in_two_ways_has_the_stack_of_the_call_that_raced() -> None:
    program = Program(weir.Device("cpu"))

    def innocent() -> None:
        program.fill()
        program.load.synchronize()

    def guilty() -> None:
        program.fill()

    with weir.check(assume="manual") as report:
        innocent()
        guilty()
        program.copy()
    assert [name.rpartition(".")[2] for _, _, name in report[0].first.stack[:2]] == ["fill", "guilty"]


def test_stacks_are_not_kept_without_a_check() -> None:
    program = Program(weir.Device("cpu"))
    with weir.check(assume="manual"):
        pass
    program.fill()
    with weir.check(assume="manual") as report:
        program.copy()
    assert not report.races, "accesses before the scope are not seen"


def test_a_report_is_a_sequence_and_says_all_in_three_ways() -> None:
    program = Program(weir.Device("cpu"))
    with weir.check(assume="manual") as report:
        assert str(report) == "weir check: no races found\n"
        program.run()
        assert len(report) == 1, "also before the end"
    assert [race.kind for race in report] == ["RAW"]
    assert report[-1].kind == "RAW"
    with pytest.raises(IndexError):
        report[1]
    described = json.loads(report.to_json())
    assert described["races"][0]["first"]["line"] == program.fill_line
    assert json.loads(report.to_sarif())["runs"][0]["results"][0]["ruleId"] == "RAW"
    assert repr(report) == "<weir.Report of 1 races>"
    assert repr(report[0]).startswith("<weir.Race RAW ")
    assert repr(report[0].first).startswith("<weir.Access writes memory #")
    with pytest.raises(weir.StateError, match="entered before"):
        report.__enter__()


def test_mode_warn_warns_from_the_line_that_completes_the_race() -> None:
    program = Program(weir.Device("cpu"))
    with warnings.catch_warnings(record=True) as caught, weir.check(mode="warn", assume="manual") as report:
        warnings.simplefilter("always")
        program.run()
        program.run()
    assert len(report) == 2, "WAR, too"
    assert [(one.category, one.filename, one.lineno) for one in caught] == [
        (weir.RaceWarning, __file__, program.copy_line),
        (weir.RaceWarning, __file__, program.fill_line),
    ]
    assert "RAW race on memory" in str(caught[0].message)
    assert "e = load.record()" in str(caught[0].message)


def test_mode_warn_where_warnings_are_errors() -> None:
    program = Program(weir.Device("cpu"))
    with warnings.catch_warnings(), weir.check(mode="warn", assume="manual"):
        warnings.simplefilter("error")
        program.fill()
        with pytest.raises(weir.RaceWarning, match="RAW race"):
            program.copy()
    assert program.y.numpy(copy=True)[0] == 3, "the copy was enqueued nevertheless"


def test_mode_raise_raises_each_time() -> None:
    program = Program(weir.Device("cpu"))
    with weir.check(mode="raise", assume="manual"):
        program.fill()
        for _ in range(2):
            with pytest.raises(weir.RaceError, match="To mend it, add:"):
                program.copy()
        e = program.load.record()
        program.compute.wait(e)
        program.copy()


def test_a_call_that_raises_a_race_error_has_enqueued_its_operation() -> None:
    a, b = weir.Stream(name="a"), weir.Stream(name="b")
    x = weir.zeros(3, "int64")
    weir.synchronize()
    with weir.check(mode="raise", assume="manual"):
        with a:
            x += 1
        with b, pytest.raises(weir.RaceError):
            x += 1
    assert x.tolist() == [2, 2, 2]


def drop_too_early() -> None:
    a, b = weir.Stream(name="a"), weir.Stream(name="b")
    x = weir.empty(3, stream=a)
    weir.fill(x, 1, stream=b)


def test_mode_raise_raises_the_race_of_a_drop_at_the_latest_at_the_end() -> None:
    with pytest.raises(weir.RaceError, match="use-after-free"), weir.check(mode="raise", assume="manual") as report:
        drop_too_early()
    assert len(report) == 1
    with weir.check() as other:
        assert (weir.ones(3) + 1).tolist() == [2, 2, 2], "nothing afterwards"
    assert len(other) == 0


def test_mode_raise_does_not_replace_another_exception() -> None:
    with pytest.raises(KeyError), weir.check(mode="raise", assume="manual") as report:
        drop_too_early()
        raise KeyError
    assert len(report) == 1
    assert weir.ones(3).tolist() == [1, 1, 1], "nothing afterwards"


def test_mode_raise_raises_the_race_of_a_drop_once() -> None:
    with weir.check(mode="raise", assume="manual"):
        drop_too_early()
        with pytest.raises(weir.RaceError, match="use-after-free"):
            weir.ones(3)
        weir.ones(3)


def test_mode_warn_warns_of_a_drop_at_the_latest_at_the_end() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with weir.check(mode="warn", assume="manual"):
            drop_too_early()
    assert [(one.category, one.filename) for one in caught] == [(weir.RaceWarning, __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weir.ones(3).tolist()


def test_mode_warn_where_warnings_are_errors_at_the_end() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(weir.RaceWarning, match="use-after-free"), weir.check(mode="warn", assume="manual"):
            drop_too_early()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_mode_warn_does_not_replace_another_exception() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", weir.RaceWarning)
        with pytest.raises(KeyError), weir.check(mode="warn", assume="manual"):
            drop_too_early()
            raise KeyError


def test_the_end_of_a_check_that_was_not_entered() -> None:
    with pytest.raises(weir.StateError, match="was not entered"):
        weir.check().__exit__(None, None, None)
    with weir.check() as report:
        pass
    with pytest.raises(weir.StateError, match="has ended"):
        report.__exit__(None, None, None)


def test_v1_races_of_two_threads() -> None:
    program = Program(weir.Device("cpu"))
    with weir.check(assume="manual") as report:
        threads = [threading.Thread(target=one) for one in (program.fill, program.copy)]
        for one in threads:
            one.start()
            one.join()
    assert len(report) == 1
    assert any(name == "Thread.run" or name == "run" for _, _, name in report[0].first.stack)


def test_v1_use_after_free() -> None:
    program = Program(weir.Device("cpu"))
    with weir.check(assume="manual") as report:
        program.x = weir.zeros(8, "float32", stream=program.load)
        program.load.synchronize()
        program.copy()
        del program.x
    assert [race.kind for race in report] == ["use-after-free"]
    assert report[0].second.is_drop


def await_without_asking(stream: weir.Stream) -> None:
    """Returns once the work of the stream is over; `check` does not see this wait, as if time had passed."""
    over = threading.Event()
    weir.host_task(over.set, stream=weir.Stream(stream.device, name="aside"), after=stream.record())
    over.wait()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("keeper", ["keep_alive", "in a list", "keeps", "keeps, in a tuple"])
def test_v1_what_an_event_keeps_is_dropped_when_it_is_over(keeper: str, late: bool, device: weir.Device) -> None:
    """Also if the event is over before it is given anything to keep."""
    a, b = weir.Stream(device, name="a"), weir.Stream(device, name="b")
    with weir.check(assume="manual") as report, Gate() as gate:
        x = weir.empty(64, stream=a)
        if not late:
            gate.hold(b)
        weir.fill(x, 1, stream=b)
        e = b.record()
        if late:
            await_without_asking(b)
        if keeper == "keep_alive":
            weir.keep_alive(x, after=e)
        elif keeper == "in a list":
            weir.keep_alive([1, x], after=e)
        elif keeper == "keeps":
            e.keeps(x)
        else:
            e.keeps((x, 1))
        del x
        gate.open()
        device.synchronize()
        weir.zeros(1)
    assert [str(race) for race in report] == []


@pytest.mark.parametrize("late", [False, True])
def test_v1_an_event_that_comes_too_early_keeps_nothing_in_time(late: bool, device: weir.Device) -> None:
    a, b = weir.Stream(device, name="a"), weir.Stream(device, name="b")
    with weir.check(assume="manual") as report, Gate() as gate:
        x = weir.empty(64, stream=a)
        e = b.record()
        if not late:
            gate.hold(b)
        weir.fill(x, 1, stream=b)
        if late:
            await_without_asking(b)
        weir.keep_alive(x, after=e)
        del x
        a.wait(b)  # too late
        gate.open()
        device.synchronize()
        weir.zeros(1)
    assert [race.kind for race in report] == ["use-after-free"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("how", ["operand", "In", "reads", "default", "closure"])
def test_v1_what_a_host_task_holds_is_dropped_when_it_is_over(how: str, late: bool, device: weir.Device) -> None:
    a, b = weir.Stream(device, name="a"), weir.Stream(device, name="b")
    b.wait(a)

    def enqueue(x: weir.Array) -> None:
        if how == "operand":
            weir.host_task(lambda _: None, x, stream=b)
        elif how == "In":
            weir.host_task(lambda _: None, weir.In(x), stream=b)
        elif how == "reads":
            weir.host_task(lambda: None, reads=[x], stream=b)
        elif how == "default":
            weir.fill(x, 1, stream=b)
            weir.host_task(lambda x=x: None, stream=b)
        else:
            weir.fill(x, 1, stream=b)
            weir.host_task(lambda: (x, None)[1], stream=b)

    with weir.check(assume="manual") as report, Gate() as gate:
        x = weir.empty(64, stream=a)
        if not late:
            gate.hold(b)
        enqueue(x)
        if late:
            await_without_asking(b)
            weir.zeros(1)
        del x
        gate.open()
        device.synchronize()
        weir.zeros(1)
    assert [str(race) for race in report] == []


def test_v1_an_array_that_was_ready_comes_after_what_it_waited_for(device: weir.Device) -> None:
    program = Program(device)
    with weir.check(assume="manual") as report:
        program.fill()
        while not program.x.ready:
            pass
        program.copy()
        program.compute.synchronize()
    assert [str(race) for race in report] == []


def test_new_arrays_have_the_labels_of_their_calls() -> None:
    made, other = weir.Stream(name="made"), weir.Stream(name="other")
    with weir.check(assume="manual") as report:
        x = weir.zeros(3, stream=made)
        y = weir.ones(3, stream=made)
        z = weir.full(3, 7, stream=made)
        for one in (x, y, z):
            weir.fill(one, 1, stream=other)
        made.synchronize()
        other.synchronize()
    assert [race.first.label for race in report] == ["zeros", "ones", "full"]


def test_a_mend_of_lines_without_a_file() -> None:
    code = """
import weir
a, b = weir.Stream(name="a"), weir.Stream(name="b")
x = weir.zeros(4, stream=a)
a.synchronize()
with weir.check(assume="manual") as report:
    weir.fill(x, 1, stream=a)
    weir.fill(x, 2, stream=b)
print(report[0].mend)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == "e = a.record()  # after <string>:7\nb.wait(e)       # before <string>:8\n"


def test_wrong_arguments() -> None:
    with pytest.raises(weir.ArgumentError, match='mode="print"'):
        weir.check(mode="print")  # type: ignore[arg-type]
    with pytest.raises(weir.ArgumentError, match='assume="auto"'):
        weir.check(assume="auto")  # type: ignore[arg-type]
    scopes = [weir.check() for _ in range(9)]
    entered = []
    with pytest.raises(weir.StateError, match="too many"):
        for one in scopes:
            one.__enter__()
            entered.append(one)
    for one in reversed(entered):
        one.__exit__(None, None, None)


class Exports:
    """Hands an array over as DLPack's protocol says, with the stream that its consumer names."""

    def __init__(self, x: weir.Array) -> None:
        self.x = x

    def __dlpack__(self, **how: Any) -> object:
        return self.x.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("assume", [None, "manual"])
@pytest.mark.parametrize("named", [True, False])
def test_f11_exports_with_and_without_a_stream(
    named: bool, assume: Literal["manual"] | None, cuda: weir.Device
) -> None:
    producer, consumer = weir.Stream(cuda, name="producer"), weir.Stream(cuda, name="consumer")
    x = weir.zeros(64, device=cuda)
    cuda.synchronize()
    with weir.check(assume=assume) as report, weir.ordering("manual"):
        with producer:
            x += 1
        capsule = x.__dlpack__(stream=consumer.handle if named else -1, max_version=(1, 0))
        with consumer:
            y = x * 2
    assert len(report) == (0 if named else 1), str(report)
    assert named or report[0].kind == "RAW"
    consumer.synchronize()
    del capsule, y


@pytest.mark.parametrize("exchanged", ["with a stream", "without", "not at all"])
def test_f11_imports_with_and_without_a_stream(exchanged: str, cuda: weir.Device) -> None:
    producer, consumer = weir.Stream(cuda, name="producer"), weir.Stream(cuda, name="consumer")
    x = weir.zeros(64, device=cuda)
    cuda.synchronize()
    with weir.check(assume="manual") as report:
        with producer:
            x += 1
        y = x
        if exchanged == "with a stream":
            y = weir.from_dlpack(Exports(x), stream=consumer)
        elif exchanged == "without":
            y = weir.from_dlpack(Exports(x))  # both sides mean the default stream
        with consumer:
            z = y * 2
    assert len(report) == (1 if exchanged == "not at all" else 0), str(report)
    assert z.numpy()[0] == 2
