"""Seeing what Weir does: trace, explain, the logger (rule V2)."""

from __future__ import annotations

import json
import logging
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import weir
from weir.testing import Gate


class Program:
    """A write that is held back, and a copy of what it writes on another stream."""

    def __init__(self, device: weir.Device) -> None:
        self.load = weir.Stream(device, name="load")
        self.compute = weir.Stream(device, name="compute")
        self.x = weir.zeros(8, "float32", stream=self.load)
        self.y = weir.zeros(8, "float32", stream=self.compute)
        self.load.synchronize()
        self.compute.synchronize()
        self.gate = Gate()

    def run(self) -> weir.Event:
        self.gate.hold(self.load)
        weir.fill(self.x, 3, stream=self.load)
        weir.copy(self.y, self.x, stream=self.compute)
        return self.compute.record()


def test_v2_trace_writes_all_three_kinds(device: weir.Device, tmp_path: Path) -> None:
    program = Program(device)
    files = [tmp_path / "run.html", tmp_path / "run.json", tmp_path / "run.weirlog"]
    with weir.trace([*files]) as trace:
        program.run()
        program.gate.open()
        device.synchronize()
        assert trace.summary()["operations"] >= 2
    assert trace.summary()["waits_issued"] == trace.summary()["waits_minimal"] == 1
    assert "<html" in files[0].read_text()
    assert json.loads(files[1].read_text())["traceEvents"]
    log = files[2].read_text()
    assert "test_see.py" in log
    assert '"read_after_write"' in log


def test_trace_to_one_file_and_after_an_exception(tmp_path: Path) -> None:
    stream = weir.Stream()
    with pytest.raises(KeyError), weir.trace(str(tmp_path / "run.weirlog")):
        weir.fill(weir.zeros(2, stream=stream), 1, stream=stream)
        raise KeyError
    assert (tmp_path / "run.weirlog").stat().st_size > 0


def test_trace_misuse(tmp_path: Path) -> None:
    with pytest.raises(weir.ArgumentError, match=r"\.weirlog"), weir.trace(tmp_path / "run.txt"):
        pass
    with pytest.raises(weir.ArgumentError, match="cannot trace to"), weir.trace(tmp_path / "none" / "run.html"):
        pass
    with pytest.raises(weir.ArgumentTypeError, match="pass a path"):
        weir.trace(3)  # type: ignore[arg-type]
    trace = weir.trace(tmp_path / "run.json")
    with pytest.raises(weir.StateError, match="was not entered"):
        trace.__exit__(None, None, None)
    with trace:
        pass
    with pytest.raises(weir.StateError, match="entered before"), trace:
        pass


def test_v2_explain_an_array(device: weir.Device) -> None:
    program = Program(device)
    assert weir.explain(program.y).pending == []
    program.run()
    said = weir.explain(program.y)
    assert len(said.pending) == len(said.waits) == 1
    assert "writes bytes [0, 32)" in said.pending[0]
    assert "waits for" in said.waits[0]
    assert '"load"' in said.waits[0]
    assert "test_see.py:" in said.waits[0]
    assert (said.protocol, said.copied, said.host_blocked) == ("none", False, False)
    assert said.pending[0] in str(said)
    assert repr(said).startswith("<weir.Explanation of ")
    assert len(weir.explain(program.x).pending) == 2
    assert weir.explain(program.y[:0]).pending == []
    program.gate.open()
    program.compute.synchronize()
    assert weir.explain(program.y).waits == []


def test_v2_explain_an_event_down_to_the_gate(device: weir.Device) -> None:
    program = Program(device)
    done = program.run()
    text = str(weir.explain(done))
    assert "a gate" in text
    assert "which is not open" in text
    assert text.index('"compute"') < text.index('"load"') < text.index("a gate")
    program.gate.open()
    done.wait()
    assert weir.explain(done).pending == []
    assert weir.explain(weir.Event()).pending == []


def test_v2_explain_plans(device: weir.Device) -> None:
    stream = weir.Stream(device)
    x = weir.ones((2, 2), device=device, stream=stream)
    on_gpu = device.kind == "cuda"
    place = "in the driver's queue" if on_gpu else "on the thread that runs the stream"
    fft = weir.explain(weir.fft.FFT(x, axes=(1,)))
    assert ("cuFFT (" if on_gpu else "FFTW (") in fft.phases[1]
    assert place in fft.phases[1]
    assert fft.phases[1].endswith("the call does not block")
    assert "phases:" in str(fft)
    product = weir.explain(weir.linalg.Matmul(x, x, blocking=True))
    assert ("cuBLASLt (" if on_gpu else "BLAS (") in product.phases[1]
    assert "the call blocks" in product.phases[1]
    offsets = weir.arange(3, dtype="int32", device=device, stream=stream)
    columns = weir.arange(2, dtype="int32", device=device, stream=stream)
    values = weir.ones(2, device=device, stream=stream)
    solver = weir.sparse.DirectSolver((values, columns, offsets, (2, 2)), values)
    assert weir.explain(solver).phases == ["not planned: call plan first"]
    solver.plan(stream=stream)
    phases = weir.explain(solver).phases
    # Of cuSOLVER, where cuDSS is not installed, one more line says what its solutions cost.
    assert [line.split(":")[0] for line in phases[:3]] == ["plan", "factorize", "solve"]
    assert len(phases) == (4 if "cuSOLVER" in phases[0] else 3)
    assert ("a host task" in phases[0]) == on_gpu
    solver.free()
    with pytest.raises(weir.StateError, match="freed"):
        weir.explain(solver)
    assert weir.explain(x).phases == []


def test_v2_explain_says_that_calls_with_arrays_of_numpy_block() -> None:
    plan = weir.fft.FFT(np.ones(8, "complex64"))
    assert "the call blocks" in weir.explain(plan).phases[1]


def test_explain_something_else() -> None:
    with pytest.raises(
        weir.ArgumentTypeError, match=r"explain\(\) got 3: pass a weir\.Array, a weir\.Token, a weir\.Event or a plan"
    ):
        weir.explain(3)


def test_v2_each_inserted_wait_is_logged(device: weir.Device, caplog: pytest.LogCaptureFixture) -> None:
    program = Program(device)
    with caplog.at_level(logging.DEBUG, logger="weir"):
        program.run()
        assert len(caplog.records) == 1
        record = caplog.records[0]
        assert record.name == "weir"
        assert Path(record.pathname).name == "test_see.py"
        line = record.getMessage()
        assert "waits for" in line
        assert line.index('"compute"') < line.index("waits for") < line.index('"load"')
        assert "it reads bytes [0, 32) of memory #" in line
        program.x += 1  # on the device's own stream: after the fill, and after the copy
        assert len(caplog.records) in (2, 3)
    program.gate.open()
    device.synchronize()


def test_nothing_is_logged_at_other_levels(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="weir"):
        Program(weir.Device("cpu")).run()
    assert not caplog.records


def test_library_calls_are_logged_with_the_time_that_they_took(caplog: pytest.LogCaptureFixture) -> None:
    x = weir.ones((4, 4), "complex128")
    with caplog.at_level(logging.INFO, logger="weir"):
        weir.fft.fft(x)
        weir.linalg.matmul(x, x)
        with weir.fft.FFT(x) as plan:
            plan.plan()
            plan.execute()
        with pytest.raises(weir.ArgumentError, match="the axis of b"):
            weir.linalg.matmul(x, weir.ones(3))
        matrix = ([1.0, 2.0], [0, 1], [0, 1, 2])
        with weir.sparse.DirectSolver(tuple(map(weir.array, matrix)), weir.ones(2)) as solver:
            solver.plan()
            solver.factorize()
            solver.solve()
    calls = [
        "weir.fft.fft returned",
        "weir.linalg.matmul returned",
        "weir.fft.FFT.plan returned",
        "weir.fft.FFT.execute returned",
        "weir.linalg.matmul failed",
        "weir.sparse.DirectSolver.plan returned",
        "weir.sparse.DirectSolver.factorize returned",
        "weir.sparse.DirectSolver.solve returned",
    ]
    assert len(caplog.records) == len(calls)
    for record, call in zip(caplog.records, calls, strict=True):
        assert re.fullmatch(re.escape(call) + r" after \d+\.\d{3} ms", record.getMessage())
        assert record.levelno == logging.INFO
        assert Path(record.pathname).name == "test_see.py"
    weir.fft.fft(x)
    assert len(caplog.records) == len(calls), "not at other levels"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_handler_that_fails_disturbs_no_library_call() -> None:
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError(record.getMessage())

    logger = logging.getLogger("weir")
    handler = Failing()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        assert weir.fft.fft(weir.ones(4, "complex128")).tolist() == [4, 0, 0, 0]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def test_the_level_of_the_root_counts_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        Program(weir.Device("cpu")).run()
    assert len(caplog.records) == 1
    with caplog.at_level(logging.DEBUG):
        logging.disable(logging.DEBUG)
        try:
            Program(weir.Device("cpu")).run()
        finally:
            logging.disable(logging.NOTSET)
    assert len(caplog.records) == 1


def test_lines_come_in_the_order_of_the_calls_on_several_threads(caplog: pytest.LogCaptureFixture) -> None:
    programs = [Program(weir.Device("cpu")) for _ in range(4)]

    def run(program: Program) -> None:
        with Gate() as gate:
            for _ in range(20):
                gate.hold(program.load)
                weir.fill(program.x, 1, stream=program.load)
                weir.copy(program.y, program.x, stream=program.compute)

    with caplog.at_level(logging.DEBUG, logger="weir"):
        threads = [threading.Thread(target=run, args=(one,)) for one in programs]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    by_thread: dict[str | None, list[str]] = {}
    for record in caplog.records:
        by_thread.setdefault(record.threadName, []).append(record.getMessage())
    assert len(by_thread) == 4
    for lines in by_thread.values():
        assert len(lines) == 39, "the first fill has nothing to wait for"
        assert ['"compute"' in line.split("waits for")[0] for line in lines] == [True, False] * 19 + [True]


def test_a_handler_may_use_weir_and_may_fail(capsys: pytest.CaptureFixture[str]) -> None:
    class Curious(logging.Handler):
        said = 0

        def emit(self, record: logging.LogRecord) -> None:
            self.said += 1
            weir.Stream(name="mine").record().wait()
            raise KeyError("handlers may fail")

    handler = Curious(logging.DEBUG)
    logger = logging.getLogger("weir")
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        program = Program(weir.Device("cpu"))
        with pytest.raises(KeyError):
            program.run()
        assert handler.said == 1
        program.gate.open()
        program.compute.synchronize()
        assert program.y.numpy(copy=True)[0] == 3, "the copy was enqueued"
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def test_one_python_line_is_seen_by_trace_and_check_alike(tmp_path: Path) -> None:
    program = Program(weir.Device("cpu"))
    log = tmp_path / "run.weirlog"
    with weir.trace(log), weir.check(assume="manual") as report:
        program.run()
        program.gate.open()
        program.compute.synchronize()
    assert f'"line":{report[0].second.line}' in log.read_text().replace(" ", "")
