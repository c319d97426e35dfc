"""Every public name has types and a docstring, and the package passes mypy --strict."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import weir

PACKAGE = Path(weir.__file__).parent
STUB = PACKAGE / "_weir" / "__init__.pyi"


def stub() -> dict[str, ast.AST]:
    """What the stub defines, by name."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, node)
    return found


def untyped(function: ast.FunctionDef) -> list[str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = [one.arg for one in given if one.annotation is None and one.arg not in ("self", "cls")]
    return names + (["return"] if function.returns is None else [])


def functions_of(node: ast.AST) -> list[ast.FunctionDef]:
    inside = node.body if isinstance(node, ast.ClassDef) else [node]
    return [one for one in inside if isinstance(one, ast.FunctionDef)]


@pytest.mark.parametrize("name", [name for name in weir.__all__ if not name.startswith("__")])
def test_a_public_name_has_types_and_a_docstring(name: str) -> None:
    thing = getattr(weir, name)
    assert thing.__doc__, f"weir.{name} has no docstring"
    node = stub().get(name)
    if node is None:
        return  # of Python, and checked by mypy
    for function in functions_of(node):
        assert not untyped(function), f"{name}: {ast.unparse(function)}"


def mypy(*what: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *what],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)},
    )


def test_a_program_is_checked_against_the_package_as_it_is_built(tmp_path: Path) -> None:
    """The stubs lie in the package's folder; without them every type would be unknown, and nothing an error."""
    assert {"__init__.pyi", "fft.pyi", "memory.pyi", "testing.pyi"} <= {file.name for file in STUB.parent.glob("*")}
    program = """import weir
from weir import fft, memory
from weir.testing import Gate

with weir.Stream("cpu", name="load") as stream, Gate() as gate, memory.use(memory.counting()):
    x: weir.Array = weir.zeros((2, 3))
    y: weir.Array = fft.fft(x)
    done: weir.Event = stream.record()
total: float = float(x.sum())
"""
    (tmp_path / "right.py").write_text(program)
    (tmp_path / "wrong.py").write_text(program + "wrong: int = weir.zeros(3)\nstream.recrod()\n")  # the control
    result = mypy("right.py", "wrong.py", cwd=tmp_path)
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[0] + line.rsplit(" ", 1)[-1] for line in errors] == [
        "wrong.py[assignment]",
        "wrong.py[attr-defined]",
    ], result.stdout + result.stderr


def test_the_signatures_name_only_what_there_is() -> None:
    result = mypy("-p", "weir", cwd=PACKAGE.parent)
    assert result.returncode == 0, result.stdout + result.stderr
