"""The examples run, and the page of the first program says what its program prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The demonstration has a test of its own.
EXAMPLES = sorted({path.name for path in (ROOT / "examples" / "python").glob("*.py")} - {"demo.py"})


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a copy of the example, as if somebody had saved it."""
    (folder / name).write_text((ROOT / "examples" / "python" / name).read_text())
    return subprocess.run(
        [sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ}
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str, tmp_path: Path) -> None:
    result = run(name, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_the_page_says_what_the_first_program_prints(tmp_path: Path) -> None:
    said = run("first_program.py", tmp_path).stdout
    page = (ROOT / "docs" / "python-first-program.md").read_text()
    blocks = re.findall(r"<!-- printed by it -->\n```text\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        assert block in said, f"it prints\n{said}"
    assert (tmp_path / "timeline.html").stat().st_size > 1000


def test_two_streams_prints_the_wait(tmp_path: Path) -> None:
    result = run("two_streams.py", tmp_path)
    assert re.search(r'"add" .*"compute".* waits for "fill" .*"load".*: it reads bytes \[0, 32\)', result.stderr)
    assert result.stdout == "[8. 8. 8. 8.]\n"
