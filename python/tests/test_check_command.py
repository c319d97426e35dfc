"""`weir check PROGRAM.py`: a program as it is, its report, and an exit status (rule V1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import weir

PROGRAM = """\
import sys, threading
import weir

weir.set_ordering("manual")
a, b = weir.Stream(), weir.Stream()
x = weir.zeros(8, stream=a)
weir.fill(x, 1, stream=a)

def second():
    weir.fill(x, 2, stream=b)

if "race" in sys.argv:
    second()
if "thread" in sys.argv:
    threading.Thread(target=second).start()
if "fail" in sys.argv:
    raise ValueError("the program's own")
if "exit" in sys.argv:
    sys.exit(3)
if "wait" in sys.argv:
    weir.synchronize()
print(__name__, sys.argv[1:])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def check(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "weir", "check", *arguments)


def test_v1_without_races(program: Path) -> None:
    told = check(program, "wait", "--mode")
    assert told.stdout == "__main__ ['wait', '--mode']\n", "what follows the program is its own"
    assert "no races found" in told.stderr
    assert told.returncode == 0


@pytest.mark.parametrize("how", ["race", "thread"])
def test_v1_races_have_both_lines(program: Path, how: str, tmp_path: Path) -> None:
    told = check("--json", tmp_path / "found.json", "--sarif", tmp_path / "found.sarif", program, how)
    assert told.returncode == 1, told.stderr
    assert "WAW race" in told.stderr
    (race,) = [one for one in json.loads((tmp_path / "found.json").read_text())["races"] if one["kind"] == "WAW"]
    lines = PROGRAM.splitlines()
    assert [lines[race[access]["line"] - 1].strip() for access in ("first", "second")] == [
        "weir.fill(x, 1, stream=a)",
        "weir.fill(x, 2, stream=b)",
    ]
    assert json.loads((tmp_path / "found.sarif").read_text())["version"] == "2.1.0"


def test_v1_a_race_as_an_exception(program: Path) -> None:
    told = check("--mode", "raise", program, "race")
    assert told.returncode == 1
    assert "weir.RaceError" in told.stderr
    assert "__main__" not in told.stdout, "the program ends there"


def test_v1_modules_run_too(program: Path) -> None:
    told = run(sys.executable, "-m", "weir", "check", "-m", "program", "race", PYTHONPATH=_path(program.parent))
    assert told.returncode == 1, told.stderr
    assert "program.py" in told.stderr


def _path(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


@pytest.mark.parametrize(("how", "says"), [("fail", "ValueError: the program's own"), ("exit", "ended with 3")])
def test_v1_a_program_that_fails_is_checked_in_part(program: Path, how: str, says: str) -> None:
    told = check(program, "wait", how)
    assert told.returncode == 2
    assert says in told.stderr
    assert "no races found" in told.stderr
    assert check(program, "race", how).returncode == 1


def test_v1_wrong_use(tmp_path: Path) -> None:
    for arguments, says in [
        ((tmp_path / "none.py",), "there is no file"),
        (("/bin/sh",), "WEIR_CHECK=1"),
        ((), "PROGRAM"),
        (("--mode", "quiet", "x.py"), "quiet"),
    ]:
        told = check(*arguments)
        assert told.returncode == 2
        assert says in told.stderr


def test_v1_the_command_of_the_package(program: Path) -> None:
    command = Path(weir.__file__).with_name("bin") / "weir"
    if not os.access(command, os.X_OK):
        pytest.skip("this build has no command: CLI11, fmt or stb was missing")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    assert run(command, "check", program, "wait", PATH=path).returncode == 0
    assert run(command, "check", program, "race", PATH=path).returncode == 1
