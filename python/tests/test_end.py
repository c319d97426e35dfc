"""Ctrl-C while the end of the program waits for host tasks (L3)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# The end of the program calls os.write, which has no frame of Python's, and then Weir, which waits: what is read from
# then on is read while Weir waits, or is about to.
PREPARE = """
import atexit, os, signal, sys, threading, weir
from weir.testing import Gate
at_end, ending = os.pipe()
atexit.register(os.write, ending, b"x")
def interrupt_at_end():
    os.read(at_end, 1)
    os.kill(os.getpid(), signal.SIGINT)
stream, gate = weir.Stream(name="load"), Gate()
"""

TASK_THAT_STAYS = """
def stays():
    interrupt_at_end()
    threading.Event().wait()
def never_begins():
    print("never")
weir.host_task(stays, stream=stream)
"""

TASKS_THAT_ARE_HELD = """
gate.hold(stream)
sys.gate = gate  # else dropping it opens it
threading.Thread(target=interrupt_at_end, daemon=True).start()
for _ in range(2):
    weir.host_task(print, stream=stream)
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PREPARE + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def test_l3_ctrl_c_at_the_end_names_the_task_that_runs_and_ends_the_program() -> None:
    done = run(TASK_THAT_STAYS + "weir.host_task(never_begins, stream=stream)\nprint('last')")
    line = (PREPARE + TASK_THAT_STAYS).rstrip().count("\n") + 1
    assert done.returncode == 130
    assert done.stdout == "last\n"
    assert done.stderr == (
        "weir: Ctrl-C ended the program, which was at its end and waited for host tasks:\n"
        f'  "stays" (<string>:{line}), which has not returned\n'
        "  1 more that had not begun\n"
    )


def test_l3_ctrl_c_at_the_end_when_no_task_has_begun() -> None:
    done = run(TASKS_THAT_ARE_HELD)
    assert done.returncode == 130
    assert done.stderr == (
        "weir: Ctrl-C ended the program, which was at its end and waited for host tasks:\n  2 more that had not begun\n"
    )


def test_l3_what_was_traced_is_written_all_the_same(tmp_path: Path) -> None:
    page = tmp_path / "timeline.html"
    assert run(TASK_THAT_STAYS, WEIR_TRACE=str(page)).returncode == 130
    assert page.read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize(("raises", "status"), [("SystemExit(7)", 7), ("SystemExit", 0), ("ValueError('told')", 1)])
def test_l3_a_handler_that_raises_at_the_end_ends_the_program(raises: str, status: int) -> None:
    done = run(
        f"""
def handler(*_):
    raise {raises}
signal.signal(signal.SIGINT, handler)
"""
        + TASK_THAT_STAYS
    )
    assert done.returncode == status
    assert "weir: a signal's handler ended the program" in done.stderr
    assert '"stays" (<string>' in done.stderr
    assert ("told" in done.stderr) == ("told" in raises)


def test_l3_negative_control_a_task_that_returns_is_waited_for() -> None:
    done = run("weir.host_task(lambda: (os.read(at_end, 1), print('over')), stream=stream)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
