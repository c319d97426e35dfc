"""Every public name has types and a docstring, and the package passes mypy --strict."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import weir

PACKAGE = Path(weir.__file__).parent
STUB = PACKAGE / "_weir" / "__init__.pyi"

pytestmark = pytest.mark.skipif(not STUB.exists(), reason="the stub is not built: build the target weir-python-stub")


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


def test_the_signatures_name_only_what_there_is() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "-p", "weir"],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
