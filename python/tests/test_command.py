"""`python -m weir` is the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import weir

HAS_COMMAND = os.access(Path(weir.__file__).with_name("bin") / "weir", os.X_OK)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weir", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.skipif(not HAS_COMMAND, reason="this build has no command: CLI11, fmt or stb was missing")
def test_it_passes_arguments_and_the_exit_status_on(tmp_path: Path) -> None:
    info = run("info")
    assert info.returncode == 0
    assert "cpu" in info.stdout
    assert run("--version").stdout == f"weir {weir.__version__}\n"
    assert run("no-such-word").returncode == 2
    log = tmp_path / "run.weirlog"
    with weir.trace(log):
        stream = weir.Stream()
        weir.fill(weir.zeros(4, stream=stream), 1, stream=stream)
        stream.synchronize()
    assert run("verify", str(log), "--strict").returncode == 0


def test_a_package_without_the_command_says_what_is_missing(tmp_path: Path) -> None:
    package = Path(weir.__file__).parent
    copy = tmp_path / "weir"
    copy.mkdir()
    for file in package.iterdir():
        if file.is_file():
            shutil.copy(file.resolve(), copy / file.name)
    result = run("info", PYTHONPATH=str(tmp_path))
    assert result.returncode == 2
    assert "built without the command" in result.stderr
    assert "libcli11-dev" in result.stderr
