"""weir.torch: programs of torch are watched. Without a GPU, tensors of the CPU stand for a device's (rule V1)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import weir
import weir.torch
from torch_device import Device, needs_torch, torch, trainer

pytestmark = needs_torch


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.end()


A, B = 16, 32  # streams


def pairs(report: weir.Report) -> list[tuple[str, str, str]]:
    """Kind and operators of each race."""
    return [(race.kind, race.first.label, race.second.label) for race in report]


def raced(device: Device, first: Callable[[], object], second: Callable[[], object]) -> list[tuple[str, str, str]]:
    """What is found if one runs on one stream, and then the other on another, which does not wait."""
    with weir.torch.check() as report:
        device.on(A)
        kept = first()
        device.on(B)
        kept = (kept, second())
    del kept
    return pairs(report)


def test_v1_both_lines_and_what_to_add(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.check() as report:
        device.on(A)
        x.add_(1)
        device.on(B)
        y = x * 2
    assert pairs(report) == [("RAW", "aten::add_", "aten::mul")]
    race = report[0]
    assert race.first.file == race.second.file == __file__
    code = Path(__file__).read_text().splitlines()
    assert "x.add_(1)" in code[race.first.line - 1]
    assert "y = x * 2" in code[race.second.line - 1]
    assert race.certainty == "definite"
    assert "record_event()" in race.mend
    assert "wait_event(e)" in race.mend
    assert any(name.endswith("test_torch_watch.py") for name, _, _ in race.first.stack)
    assert y.tolist() == [2] * 8


def test_v1_operations_of_weir_on_tensors_are_compared_with_those_of_torch(device: Device) -> None:
    x = torch.zeros(8)

    def run(waits: Callable[[], object]) -> list[tuple[str, str, str]]:
        with weir.torch.check() as report:
            device.on(A)
            x[4:].add_(1)
            waits()
            kept = weir.asarray(x[:4]) + 1  # other bytes
            kept = weir.asarray(x) + 1
            a = weir.asarray(x)
            a += 1  # over when it returns: torch has no streams on the CPU
            device.on(B)
            kept = (kept, x.mul_(2))
            device.synchronize()
        del kept, a
        return pairs(report)

    found = run(lambda: None)
    assert ("default-stream", "aten::add_", "add") in found
    assert {first for _, first, _ in found} == {"aten::add_"}
    assert run(device.synchronize) == []
    assert run(lambda: device.synchronize_stream(A)) == []
    assert run(lambda: device.synchronize_stream(B)) == found, "control"


def test_v1_waits_order_and_so_does_the_host(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.check() as report:
        device.on(A)
        x.add_(1)
        device.wait(B, A)
        device.on(B)
        x.mul_(2)
        device.synchronize()
        device.on(A)
        x.add_(1)
    assert pairs(report) == []


def test_v1_reads_of_two_streams_do_not_race(device: Device) -> None:
    x = torch.ones(8)
    assert raced(device, lambda: x + 1, lambda: x + 2) == []


@pytest.mark.parametrize(
    ("first", "second", "is_race"),
    [
        pytest.param(lambda x: x[:4].add_(1), lambda x: x[4:].add_(1), False, id="halves"),
        pytest.param(lambda x: x[:5].add_(1), lambda x: x[4:].add_(1), True, id="overlapping"),
        pytest.param(lambda x: x[::2].add_(1), lambda x: x[1::2].add_(1), False, id="even and odd"),
        pytest.param(lambda x: x.view(2, 4)[:, 0].add_(1), lambda x: x.view(2, 4)[:, 1].add_(1), False, id="columns"),
        pytest.param(lambda x: x.view(2, 4)[1].add_(1), lambda x: x[4:6].neg_(), True, id="views"),
        pytest.param(lambda x: x.view(2, 4).t(), lambda x: x.add_(1), False, id="a view reads nothing"),
        pytest.param(lambda x: torch.ops.aten._unsafe_view(x, (2, 4)), lambda x: x.add_(1), False, id="an unsafe view"),
        pytest.param(lambda x: torch.unsafe_chunk(x, 2), lambda x: x.add_(1), False, id="unsafe chunks"),
        pytest.param(lambda x: x.unsqueeze_(0), lambda x: x.add_(1), False, id="a shape that changes"),
        pytest.param(lambda x: x.shape, lambda x: x.add_(1), False, id="a shape reads nothing"),
        pytest.param(lambda x: torch.empty_like(x), lambda x: x.add_(1), False, id="likeness reads nothing"),
        pytest.param(lambda x: torch.zeros_like(x), lambda x: x.add_(1), False, id="zeros like it read nothing"),
        pytest.param(lambda x: x.clone(), lambda x: x.add_(1), True, id="clone"),
        pytest.param(lambda x: x.to(torch.float64), lambda x: x.add_(1), True, id="to"),
        pytest.param(lambda x: torch.cat([x, x]), lambda x: x.add_(1), True, id="lists"),
        pytest.param(lambda x: torch.stack([x[:4], x[:4]]), lambda x: x[4:].add_(1), False, id="lists of parts"),
        pytest.param(lambda x: torch._foreach_add_([x, x.clone()], 1), lambda x: x + 1, True, id="foreach"),
        pytest.param(lambda x: torch.add(torch.ones(8), 1, out=x), lambda x: x + 1, True, id="out="),
        pytest.param(lambda x: torch.max(x.view(2, 4), 0), lambda x: x.add_(1), True, id="two results"),
        pytest.param(lambda x: torch.nn.functional.linear(x, torch.ones(3, 8)), lambda x: x.zero_(), True, id="linear"),
        pytest.param(lambda x: torch.where(x > 0, x, x + 1), lambda x: x.fill_(1), True, id="where"),
        pytest.param(lambda x: x.sum(), lambda x: x.copy_(torch.ones(8)), True, id="copy_"),
        pytest.param(lambda x: x.normal_(), lambda x: x.sum(), True, id="random"),
    ],
)
def test_v1_reads_and_writes_follow_from_schemas(
    device: Device, first: Callable[[Any], object], second: Callable[[Any], object], is_race: bool
) -> None:
    x = torch.ones(8)
    found = raced(device, lambda: first(x), lambda: second(x))
    assert bool(found) == is_race, found


def test_v1_what_depends_on_values_is_possible(device: Device) -> None:
    x = torch.ones(8)
    with weir.torch.check() as report:
        device.on(A)
        x.index_put_((torch.tensor([0]),), torch.tensor([5.0]))
        device.on(B)
        x[4:].add_(1)
    assert [race.certainty for race in report if race.first.label.endswith(("index_put_", "_index_put_impl_"))] == [
        "possible"
    ]


def test_v1_a_result_is_written(device: Device) -> None:
    made: list[Any] = []
    found = raced(device, lambda: made.append(torch.ones(8) + 1), lambda: made[0].neg())
    assert found == [("RAW", "aten::add", "aten::neg")]


def test_v1_backward_passes_are_seen_on_their_own_threads(device: Device) -> None:
    x = torch.ones(8, requires_grad=True)
    with weir.torch.check() as report:
        device.on(A)
        (x * x).sum().backward()
        device.on(B)
        assert x.grad is not None
        x.grad.add_(1)
    assert report
    assert {race.second.label for race in report} == {"aten::add_"}


def test_v1_threads_that_begin_inside_take_part(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.check() as report:
        device.on(A)
        thread = threading.Thread(target=lambda: x.add_(1))
        thread.start()
        thread.join()
        device.on(B)
        x.mul_(2)
    assert pairs(report) == [("WAW", "aten::add_", "aten::mul_")]


def test_v1_memory_that_is_freed_too_early(device: Device) -> None:
    x = torch.zeros(8)
    address = x.untyped_storage().data_ptr()
    with weir.torch.check() as report:
        device.on(A)
        device.allocated(address, A)
        x.zero_()
        device.wait(B, A)
        device.on(B)
        y = x + 1
        device.freed(address)
    assert [race.kind for race in report] == ["use-after-free"]
    assert report[0].mend.startswith("x.record_stream(")
    del y


def test_v1_nothing_is_watched_before_and_after(device: Device) -> None:
    x = torch.zeros(8)
    device.on(A)
    x.add_(1)
    with weir.torch.check() as report:
        device.on(B)
        x.add_(1)
    device.on(A)
    x.add_(1)
    assert pairs(report) == []
    start = threading.Thread.start
    assert start.__qualname__ == "Thread.start", "patches are taken back"


def test_v1_checks_nest_and_repeat(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.check() as outer:
        device.on(A)
        x.add_(1)
        with weir.torch.check() as inner:
            device.on(B)
            x.add_(1)
            device.on(A)
            x.add_(1)
        assert len(inner) == 1
        x.mul_(2)
        device.on(B)
        x.mul_(2)
    assert len(outer) == 4  # also of the first one on B with the last one on A
    assert len(inner) == 1
    with weir.torch.check() as again:
        device.on(A)
        x.add_(1)
    assert pairs(again) == []


def test_v1_a_program_on_the_cpu_runs_as_it_is() -> None:
    step = trainer()
    losses = [step() for _ in range(3)]
    with weir.torch.check() as report:
        losses += [step() for _ in range(3)]
    losses += [step() for _ in range(3)]
    assert pairs(report) == []
    assert losses == sorted(losses, reverse=True)


def test_v1_packages_whose_kernels_are_no_operators_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with weir.torch.check() as report:
        pass
    assert not [text for text in report.unseen if "CuPy" in text]
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    with weir.torch.check() as report:
        pass
    assert [text for text in report.unseen if "CuPy" in text]


def test_v1_collectives_are_named(device: Device) -> None:
    device.end()
    group = torch.distributed
    group.init_process_group("gloo", store=group.HashStore(), rank=0, world_size=1)
    try:
        with weir.torch.check() as report:
            group.all_reduce(torch.ones(4))
    finally:
        group.destroy_process_group()
    assert [text for text in report.unseen if "collectives" in text]


def test_v1_errors_of_operators_pass_through(device: Device) -> None:
    device.on(A)
    with weir.torch.check() as report, pytest.raises(RuntimeError, match="size"):
        torch.zeros(3) + torch.zeros(4)
    assert pairs(report) == []


def test_v1_modes(device: Device) -> None:
    def race() -> None:
        device.on(A)
        x = torch.zeros(8)
        x.add_(1)
        device.on(B)
        x.add_(1)

    with pytest.warns(weir.RaceWarning, match="WAW race"), weir.torch.check(mode="warn"):
        race()
    with pytest.raises(weir.RaceError, match="WAW race"), weir.torch.check(mode="raise"):
        race()
    with pytest.raises(weir.ArgumentError, match="mode"):
        weir.torch.check(mode="quiet")  # type: ignore[arg-type]
    checked = weir.torch.check()
    with checked:
        pass
    with pytest.raises(weir.StateError, match="entered before"), checked:
        pass


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, **environment},
    )


def test_v1_without_torch_and_without_a_compiler(tmp_path: Path) -> None:
    told = run_python("import weir.torch\nwith weir.torch.check(): pass")
    assert "import torch first" in told.stderr
    code = "import torch, weir.torch\nwith weir.torch.check(): pass"
    told = run_python(code, WEIR_CACHE_DIR=str(tmp_path), CXX="no-such-compiler")
    assert "MissingLibrary" in told.stderr
    assert "no-such-compiler" in told.stderr
    assert "install g++" in told.stderr
    told = run_python(code, WEIR_CACHE_DIR=str(tmp_path), CXX="false")
    assert "could not be compiled for torch" in told.stderr
    assert list((tmp_path / "torch").iterdir()) == [], "nothing is left half done"


def test_v1_another_tool_that_has_torchs_hooks() -> None:
    told = run_python(
        "import torch.cuda._sanitizer as s\ns.enable_cuda_sanitizer()\nimport weir.torch\nwith weir.torch.check(): pass"
    )
    assert "StateError" in told.stderr
    assert "sanitizer" in told.stderr


PROGRAM = """\
import torch
from weir import _torch_build
device = _torch_build.load()  # made up
device.weir_torch_pretend(16)
x = torch.zeros(8)
x.add_(1)
device.weir_torch_pretend({second})
x.mul_(2)
"""


@pytest.mark.parametrize(("second", "status"), [(16, 0), (32, 1)])
def test_v1_programs_are_checked_from_the_command_line(tmp_path: Path, second: int, status: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(second=second))
    told = subprocess.run(
        [sys.executable, "-m", "weir", "check", str(program)], capture_output=True, text=True, check=False, timeout=600
    )
    assert told.returncode == status, told.stderr
    assert ("program.py:6" in told.stderr) == ("program.py:8" in told.stderr) == bool(status), told.stderr
