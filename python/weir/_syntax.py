"""What the text of a function says of its variables."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from types import FunctionType

LOOPS = (ast.For, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def known_names(body: FunctionType) -> dict[str, object]:
    """What the names of a body refer to, without its own variables."""
    known = {**vars(builtins), **body.__globals__}
    for name, cell in zip(body.__code__.co_freevars, body.__closure__ or (), strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:
            known.pop(name, None)  # it has no value yet
    return known


class Names(ast.NodeVisitor):
    """The variables that some statements load and store; those of comprehensions are their own."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.loaded: set[str] = set()
        self.stored: set[str] = set()
        for node in nodes:
            self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        (self.loaded if isinstance(node.ctx, ast.Load) else self.stored).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.loaded.add(node.target.id)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _COMPREHENSIONS):
            super().generic_visit(node)
            return
        inner = Names(ast.iter_child_nodes(node))
        self.loaded |= inner.loaded - inner.stored


def targets_of(statement: ast.AST) -> list[ast.expr]:
    """What a statement itself assigns, without the statements in it."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return []  # it names a type
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)):
        return [statement.target]
    return []


def assigned_by(statement: ast.AST) -> set[str]:
    return Names(targets_of(statement)).stored


def head_of(statement: ast.stmt) -> ast.expr | None:
    """The expression that decides what a compound statement runs."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    return statement.iter if isinstance(statement, ast.For) else None


def stored_before_loaded(statements: list[ast.stmt], name: str) -> bool | None:
    """True: these statements store the variable before they can load it; False: they may load it first; None: neither
    is certain, or they do not have it."""
    for statement in statements:
        parts = [one for one in ast.iter_child_nodes(statement) if not isinstance(one, ast.stmt)]
        names = Names([statement] if not isinstance(statement, (*LOOPS, ast.If)) else parts)
        if name in names.loaded:
            return False
        if isinstance(statement, ast.If):
            ways = [stored_before_loaded(block, name) for block in (statement.body, statement.orelse)]
            if False in ways:
                return False
            found = all(ways)
        elif isinstance(statement, LOOPS):
            if name not in names.stored and stored_before_loaded(statement.body, name) is False:
                return False
            if stored_before_loaded(statement.orelse, name) is False:
                return False
            found = False  # it may run no time
        else:
            found = name in assigned_by(statement)
        if found:
            return True
    return None


def assigned_value(statement: ast.stmt) -> ast.expr | None:
    """The expression that a statement assigns, or one part of it at a time."""
    value = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def starts(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def statements_of(text: str, like: ast.stmt) -> list[ast.stmt]:
    """Statements of a text, in the line of another one."""
    made = ast.parse(text).body
    for statement in made:
        for node in ast.walk(statement):
            ast.copy_location(node, like)
    return made


def tuple_text(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
