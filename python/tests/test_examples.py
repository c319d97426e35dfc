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


# What an example, or the program of a page, needs besides NumPy. ./run test installs Numba, and ./run test --interop
# the others.
NEEDS = {
    "python_kernel.py": ("numba",),
    "python-kernels.md": ("numba",),
    "torch_races.py": ("torch",),
    "torch_safe.py": ("torch",),
    "torch_triton.py": ("torch", "triton"),
    "torch.md": ("torch",),
    "torch-kernels.md": ("torch", "triton"),
    "tutorial_exchange.py": ("torch", "jax"),
    "tutorial_exchange_gpu.py": ("torch", "cupy", "jax"),
    "tutorial-exchange.md": ("torch", "jax"),
}


def skip_where_it_is_missing(name: str) -> None:
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed: ./run test --interop installs it")


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a copy of the example, as if a user had saved it."""
    (folder / name).write_text((ROOT / "examples" / "python" / name).read_text())
    return subprocess.run(
        [sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ}
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str, tmp_path: Path) -> None:
    skip_where_it_is_missing(name)
    result = run(name, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def printed_blocks() -> list[str]:
    """What the page of the first program says that it prints."""
    page = (ROOT / "docs" / "python-first-program.md").read_text()
    blocks = re.findall(r"<!-- printed by it -->\n```text\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 5
    return blocks


def without_lines(text: str) -> str:
    """The numbers of lines are those of the example, which has comments between the blocks of the page."""
    return re.sub(r"(first_program\.py):\d+", r"\1", text)


def test_the_page_says_what_the_first_program_prints(tmp_path: Path) -> None:
    said = run("first_program.py", tmp_path).stdout
    for block in printed_blocks():
        assert block in said, f"it prints\n{said}"
    assert (tmp_path / "timeline.html").stat().st_size > 1000


def test_the_tutorial_of_the_exchange_says_what_it_prints(tmp_path: Path) -> None:
    skip_where_it_is_missing("tutorial_exchange.py")
    said = run("tutorial_exchange.py", tmp_path).stdout
    page = (ROOT / "docs" / "tutorial-exchange.md").read_text()
    blocks = [text for text in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "#" not in text]
    assert len(blocks) == 2
    for block in blocks:
        assert block in said, f"it prints\n{said}"


def test_the_tutorial_of_kernels_says_what_it_prints(tmp_path: Path) -> None:
    said = run("tutorial_kernels.py", tmp_path).stdout
    page = (ROOT / "docs" / "tutorial-kernels.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert block in said, f"it prints\n{said}"


def test_two_streams_prints_the_wait(tmp_path: Path) -> None:
    result = run("two_streams.py", tmp_path)
    assert re.search(r'"add" .*"compute".* waits for "fill" .*"load".*: it reads bytes \[0, 32\)', result.stderr)
    assert result.stdout == "[8. 8. 8. 8.]\n"


def pages_with_python() -> dict[str, str]:
    """The pages that show Python, each with its blocks as one program: as they are copied, one after the other."""
    found = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        if blocks:
            found[page.name] = "\n\n".join(blocks)
    return found


PAGES = pages_with_python()


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_their_order(page: str, tmp_path: Path) -> None:
    skip_where_it_is_missing(page)
    program = PAGES[page]
    is_for_pytest = "\ndef test_" in program
    name = "test_page.py" if is_for_pytest else "first_program.py"
    (tmp_path / name).write_text(program)
    how = ["-m", "pytest", "-q", "-p", "weir.pytest_plugin", "-p", "no:cacheprovider"] if is_for_pytest else []
    result = subprocess.run(
        [sys.executable, *how, name], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    if is_for_pytest:
        assert f"{program.count('def test_')} passed" in result.stdout
    else:
        assert result.stdout
    if page == "python-first-program.md":
        said = without_lines(result.stdout)
        for block in printed_blocks():
            assert without_lines(block) in said, f"it prints\n{said}"


def test_the_pages_with_python_are_found() -> None:
    assert {"README.md", "python-first-program.md", "python.md", "testing-for-races.md"} <= set(PAGES)
