"""Bodies of kernels whose items wait for each other, for devices that run code of the host.

A body is divided at its barriers into phases. Each phase is a function of one item, which runs for all items of a group
before the next phase starts. Statements around a barrier (loops and conditions), and what they depend on, run once for
the group, so they have to be the same for all its items. What an item keeps from one phase to a later one lies in an
array with an element for each item. This module and _syntax.py know Python's syntax; _numba_groups.py compiles what
it makes.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, NoReturn

from weir._syntax import (
    LOOPS,
    Names,
    assigned_by,
    assigned_value,
    head_of,
    known_names,
    starts,
    statements_of,
    stored_before_loaded,
    targets_of,
    tuple_text,
)
from weir._weir import ArgumentError

_OF_GROUP = {"group_id", "global_range", "local_range"}  # of an item: the same for all items of a group
_PURE = {range, min, max, len, int, float, bool, abs, round, divmod}  # the same for the same arguments
_SIMPLE = (  # expressions, and parts of them, that are the same if their parts are
    *(ast.Constant, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Tuple, ast.Slice, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)


class MadeArray:
    """An array that a body makes: ``cuda.shared.array(shape, dtype)`` for the items of a group, or
    ``cuda.local.array(shape, dtype)`` for each item."""

    def __init__(self, shape: tuple[int, ...], dtype: object) -> None:
        self.shape = shape
        self.dtype = dtype


class Phase:
    """What all items of a group do before one of them does what follows."""

    def __init__(self, statements: list[ast.stmt], in_loop: bool) -> None:
        self.statements = statements
        self.in_loop = in_loop
        names = Names(statements)
        self.stored = names.stored
        self.names = names.stored | names.loaded

    def may_load_first(self, name: str) -> bool:
        """Whether an item may use a value of the variable that it has from another phase or an earlier run of this."""
        return name in self.names and stored_before_loaded(self.statements, name) is False

    def surely_stores_first(self, name: str) -> bool:
        return stored_before_loaded(self.statements, name) is True


class Phases:
    """A body that has barriers or makes arrays, divided. Raises ArgumentError, with the line, where it cannot be.

    ``kind_of`` says of what a call calls: "barrier", "shared", "local" or None. ``of_group`` are variables that
    have to be the same for all items of a group, too: the group has one of them.
    """

    def __init__(
        self, body: FunctionType, kind_of: Callable[[object], str | None], of_group: frozenset[str] = frozenset()
    ) -> None:
        self.body = body
        self.name = body.__name__
        self.known = known_names(body)
        self._kind_of = kind_of
        self.tree = self._parsed()
        self.parameters = [one.arg for one in (*self.tree.args.posonlyargs, *self.tree.args.args)]
        self.item = self.parameters[0]
        names = Names(self.tree.body)
        self.variables = names.stored - set(self.parameters)
        self._local = names.stored | set(self.parameters)
        self._around: dict[ast.stmt, list[ast.stmt]] = {}  # the statements around a statement, the outermost first
        self._find_around(self.tree.body, [])
        self.made = self._made_arrays()
        self.shared = self._shared_arrays()
        self.barriers = [one for one in self._around if self._is_barrier(one)]
        self._expect_only_statements()
        self._of_group: set[ast.stmt] = set()  # compound statements that run once for the group
        self._controls = set(of_group)  # variables that they depend on
        self._find_controls()
        self._check_controls()
        self._check_stores()
        self.phases: list[Phase] = []
        self._sequence = self._divided(self.tree.body, False)

    # --- What the body is

    def _parsed(self) -> ast.FunctionDef:
        try:
            lines, first = inspect.getsourcelines(self.body)
        except (OSError, TypeError) as reason:
            raise ArgumentError(
                f"the kernel {self.name} has a barrier or makes an array, and its source cannot be read ({reason}): on "
                f"the host its text is changed there, so define it in a file"
            ) from reason
        source = "".join(lines)
        if source[:1].isspace():  # it stands in a function or a class
            source, first = "if True:\n" + source, first - 1
        try:
            tree: Any = ast.increment_lineno(ast.parse(source), first - 1)
        except SyntaxError:
            tree = ast.Module([], [])
        found = next((one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)), None)
        if found is None or found.name != self.body.__code__.co_name:
            raise ArgumentError(
                f"the kernel {self.name} has a barrier or makes an array, and is no function of its own: write it as "
                f"def f(item, x): ..."
            )
        found.decorator_list = []
        found.returns = None
        for one in (*found.args.posonlyargs, *found.args.args):
            one.annotation = None
        return found

    def _find_around(self, block: list[ast.stmt], around: list[ast.stmt]) -> None:
        for statement in block:
            self._around[statement] = around
            for _, value in ast.iter_fields(statement):
                parts: list[Any] = value if isinstance(value, list) else []
                self._find_around([one for one in parts if isinstance(one, ast.stmt)], [*around, statement])
                for one in parts:
                    if isinstance(one, (ast.excepthandler, ast.match_case)):
                        inner: Any = one
                        self._find_around(inner.body, [*around, statement])

    def _refuse(self, node: ast.stmt | ast.expr, why: str) -> NoReturn:
        raise ArgumentError(f'the kernel {self.name}, line {node.lineno}, "{ast.unparse(node).splitlines()[0]}": {why}')

    def _value_of(self, expression: ast.AST) -> object:
        """What a dotted name refers to that is no variable of the body."""
        if isinstance(expression, ast.Name):
            return None if expression.id in self._local else self.known.get(expression.id)
        if isinstance(expression, ast.Attribute):
            return getattr(self._value_of(expression.value), expression.attr, None)
        return None

    def _kind(self, node: ast.AST | None) -> str | None:
        return self._kind_of(self._value_of(node.func)) if isinstance(node, ast.Call) else None

    def _is_barrier(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Expr) and self._kind(statement.value) == "barrier"

    def _made_arrays(self) -> dict[str, MadeArray]:
        """What shared.array and local.array make, by the functions that make it on the host."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and self._makes_array(node)]
        return {self._maker(one): self._made_by(one) for one in calls}

    def _makes_array(self, node: ast.AST) -> bool:
        return self._kind(node) in ("shared", "local")

    @staticmethod
    def _maker(call: ast.Call) -> str:
        """The function that makes on the host what this call makes: of its place, so that copies have the same one."""
        return f"_weir_array_{call.lineno}_{call.col_offset}"

    def _made_by(self, call: ast.Call) -> MadeArray:
        """What a call of shared.array or local.array makes."""
        given: dict[str | None, ast.expr] = dict(zip(("shape", "dtype"), call.args, strict=False))
        given |= {one.arg: one.value for one in call.keywords}
        if set(given) != {"shape", "dtype"} or len(call.args) > 2:
            self._refuse(
                call, f"a {self._kind(call)} array has a shape and a dtype, such as (64, float32), and no more here"
            )
        for one in sorted(Names(given.values()).loaded & self._local):
            self._refuse(call, f"{one} is no constant: the shape and the dtype are numbers or global names")
        try:
            shape, dtype = (self._constant(given[one]) for one in ("shape", "dtype"))
            extents = tuple(map(operator.index, shape if isinstance(shape, tuple) else (shape,)))
            if min(extents, default=1) < 0:
                raise ValueError(f"{min(extents)} is negative")
        except Exception as error:
            self._refuse(call, f"the shape is a number or a tuple of numbers, and the dtype a type ({error})")
        return MadeArray(extents, dtype)

    def _constant(self, expression: ast.expr) -> Any:
        code = compile(ast.fix_missing_locations(ast.Expression(expression)), self.body.__code__.co_filename, "eval")
        return eval(code, dict(self.known))

    def _shared_arrays(self) -> dict[str, MadeArray]:
        found: dict[str, MadeArray] = {}
        for statement in self._around:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            if self._kind(statement.value) != "shared":
                continue
            target = statement.targets[0]
            if self._around[statement] or len(statement.targets) > 1 or not isinstance(target, ast.Name):
                self._refuse(
                    statement, "a shared array gets its name at the start of the body, outside of loops and ifs"
                )
            if not self._is_assigned_once(target.id):
                self._refuse(
                    statement, f"{target.id} gets another value as well: give the shared array a name of its own"
                )
            found[target.id] = self.made[self._maker(statement.value)]
        return found

    def local_array(self, name: str) -> MadeArray | None:
        """The array of each item that the variable refers to from its start on, outside of loops and ifs."""
        for statement in self._around:
            call = self._local_call(statement, name)
            if call is not None and not self._around[statement] and self._is_assigned_once(name):
                return self.made[self._maker(call)]
        return None

    def _local_call(self, statement: ast.stmt, name: str) -> ast.Call | None:
        """The call by which a statement gives the variable an array of each item."""
        value = statement.value if isinstance(statement, ast.Assign) and assigned_by(statement) == {name} else None
        return value if isinstance(value, ast.Call) and self._kind(value) == "local" else None

    def _is_assigned_once(self, name: str) -> bool:
        return sum(name in assigned_by(one) for one in self._around) == 1

    def _makes_shared(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Assign) and self._kind(statement.value) == "shared"

    @property
    def is_divided(self) -> bool:
        return bool(self.barriers or self.shared)

    def _expect_only_statements(self) -> None:
        """Refuses barriers and shared arrays inside of expressions, of functions and of what cannot be divided."""
        alone = [one for one in self._around if self._is_barrier(one) or self._makes_shared(one)]
        right = {id(one.value) for one in alone if isinstance(one, (ast.Expr, ast.Assign))}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call):
                continue
            kind = self._kind(node)
            if kind == "barrier" and id(node) not in right:
                self._refuse(node, "a barrier is a statement of its own")
            if kind == "shared" and id(node) not in right:
                self._refuse(node, "a shared array gets a name: kept = cuda.shared.array(64, float32)")
        for barrier in self.barriers:
            for one in self._around[barrier]:
                if not isinstance(one, (ast.If, *LOOPS)):
                    self._refuse(
                        barrier,
                        f"a barrier stands in the body, in an if or in a loop, and not in what starts in line "
                        f"{one.lineno}",
                    )

    # --- What runs once for the group

    def _statements_that_assign(self, names: set[str]) -> Iterator[ast.stmt]:
        for statement in self._around:
            if not self._makes_shared(statement) and not names.isdisjoint(assigned_by(statement)):
                yield statement

    def _find_controls(self) -> None:
        """The statements around barriers, the variables that they depend on, and what assigns these."""
        found = [one for barrier in self.barriers for one in self._around[barrier]]
        controls: set[str] | None = None
        while controls != self._controls or not self._of_group.issuperset(found):
            controls = self._controls.copy()
            self._of_group.update(found)
            heads = [head for one in self._of_group if (head := head_of(one)) is not None]
            self._controls |= Names(heads).loaded & self._assigned_anywhere()
            found = []
            for one in self._of_group:
                if isinstance(one, ast.For):
                    self._controls |= assigned_by(one)
            for one in self._statements_that_assign(self._controls):
                value = assigned_value(one)
                self._controls |= (
                    assigned_by(one) | (Names([value]).loaded if value else set()) & self._assigned_anywhere()
                )
                found += [*self._around[one], *([one] if isinstance(one, ast.For) else [])]
            found += [around for one in self._around for around in self._left_by(one)]

    def _assigned_anywhere(self) -> set[str]:
        return {name for one in self._around if not self._makes_shared(one) for name in assigned_by(one)}

    def _left_by(self, statement: ast.stmt) -> list[ast.stmt]:
        """What is around a break, continue or return that leaves a loop of the group, or a phase before the last."""
        around = self._around[statement]
        if isinstance(statement, (ast.Break, ast.Continue)):
            loop = max(k for k, one in enumerate(around) if isinstance(one, LOOPS))
            return around[loop + 1 :] if around[loop] in self._of_group else []
        if not isinstance(statement, ast.Return) or not around:
            return []
        in_loop = any(one in self._of_group and isinstance(one, LOOPS) for one in around)
        return around if in_loop or any(starts(one) > starts(statement) for one in self._dividing()) else []

    def _dividing(self) -> Iterator[ast.stmt]:
        """The statements at which phases end."""
        yield from self.barriers
        yield from self._of_group
        yield from self._statements_that_assign(self._controls)

    def _check_controls(self) -> None:
        for one in sorted(self._of_group, key=lambda one: one.lineno):
            head = head_of(one)
            if head is None or (isinstance(one, LOOPS) and one.orelse):
                self._refuse(
                    one,
                    "it runs once for all items of a group, since a barrier depends on it: use if, for or while, and "
                    "loops without else",
                )
            why = self._differs(head)
            if why:
                self._refuse(one, f"{self._reason(one)}, so it has to be the same for all items of a group, and {why}")
        for one in self._statements_that_assign(self._controls):
            value = assigned_value(one)
            plain = all(
                isinstance(part, (ast.Name, ast.Tuple, ast.List, ast.expr_context))
                for target in targets_of(one)
                for part in ast.walk(target)
            )
            names = sorted(assigned_by(one) & self._controls)
            why = self._differs(value) if value is not None and plain else "that is no plain assignment"
            if why:
                self._refuse(
                    one,
                    f"{self._uses_of(names)}, so it has to be the same for all items of a group, and {why}",
                )

        by_statements = {id(part) for one in self._around for target in targets_of(one) for part in ast.walk(target)}
        node: Any
        for node in ast.walk(self.tree):
            is_stored = (
                isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in by_statements
            )
            if is_stored and node.id in self._controls:
                self._refuse(node, f"{self._uses_of([node.id])}, so it is assigned by statements of its own")

    def _reason(self, statement: ast.stmt) -> str:
        """Why a statement runs once for the group."""
        for one, around in self._around.items():
            if statement in around and one in self.barriers:
                return f"the barrier in line {one.lineno} depends on it"
        for one, around in self._around.items():
            if statement in around and isinstance(one, ast.Return):
                return f"items that return in line {one.lineno} would not reach what all items of the group do later"
        return "whether items reach a barrier depends on it"

    def _uses_of(self, names: list[str]) -> str:
        """What depends on variables."""
        for one in sorted(self._of_group, key=starts):
            head = head_of(one)
            if head is not None and not Names([head]).loaded.isdisjoint(names):
                return f"whether items reach a barrier depends on it, in line {one.lineno}"
        return "whether items reach a barrier depends on it"

    def _is_item(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_group":
            return self._is_item(node.func.value)
        return isinstance(node, ast.Name) and node.id == self.item

    def _differs(self, expression: ast.AST) -> str | None:
        """Why an expression may differ among the items of a group; None if it is the same for all."""
        if isinstance(expression, ast.Name):
            if expression.id == self.item:
                return f"{expression.id} is the item"
            same = self._controls | self.shared.keys()
            if expression.id in self.variables - same:
                return f"{expression.id} is a variable of each item"
            return None
        if isinstance(expression, ast.Attribute) and self._is_item(expression.value):
            return None if expression.attr in _OF_GROUP else f"{ast.unparse(expression)} is another one for each item"
        if isinstance(expression, ast.Call):
            return self._call_differs(expression)
        if not isinstance(expression, _SIMPLE):
            return f'"{ast.unparse(expression)}" may be another one for each item'
        return next((why for part in ast.iter_child_nodes(expression) if (why := self._differs(part))), None)

    def _call_differs(self, call: ast.Call) -> str | None:
        function = call.func
        if isinstance(function, ast.Attribute) and self._is_item(function.value):
            if function.attr.removeprefix("get_") not in _OF_GROUP:
                return f"{ast.unparse(call)} is another one for each item"
        elif not self._is_pure(function):
            return f"what {ast.unparse(function)} returns may be another one for each item"
        parts = [*call.args, *(one.value for one in call.keywords)]
        return next((why for part in parts if (why := self._differs(part))), None)

    def _is_pure(self, function: ast.expr) -> bool:
        """Whether a function gives the same for the same numbers, and does nothing else."""
        value = self._value_of(function)
        is_type = isinstance(value, type) and value.__module__ == "numpy"
        is_known = any(value is one for one in _PURE) or getattr(math, getattr(value, "__name__", ""), None) is value
        return value is not None and (is_type or is_known)

    def _check_stores(self) -> None:
        """A parameter that items change would need a place for each item."""
        if not self.is_divided:
            return
        for one in self._around:
            for name in sorted(assigned_by(one) & set(self.parameters)):
                if name not in self._controls:
                    self._refuse(
                        one,
                        f"{name} is a parameter, which a body with barriers does not change: use a variable of its own",
                    )

    # --- Phases

    def _divided(self, block: list[ast.stmt], in_loop: bool) -> list[ast.stmt | int]:
        """The statements of the group's function; a number stands for a phase, which runs for all items."""
        made: list[ast.stmt | int] = []
        current: list[ast.stmt] = []

        def end_phase() -> None:
            if current:
                made.append(len(self.phases))
                self.phases.append(Phase(current.copy(), in_loop))
                current.clear()

        for statement in block:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if is_text or self._makes_shared(statement):
                continue
            of_group = isinstance(statement, (ast.Break, ast.Continue, ast.Return)) or self._controls & assigned_by(
                statement
            )
            if not (statement in self._of_group or statement in self.barriers or of_group):
                current.append(statement)
                continue
            end_phase()
            if isinstance(statement, ast.Return):
                made.append(ast.copy_location(ast.Return(None), statement))
            elif statement in self._of_group:
                divided: Any = copy.copy(statement)
                inside = in_loop or isinstance(statement, LOOPS)
                divided.body = self._divided(divided.body, inside)
                divided.orelse = self._divided(divided.orelse, inside)
                made.append(divided)
            elif statement not in self.barriers:
                made.append(statement)
        end_phase()
        return made

    def kept(self) -> dict[str, ast.stmt]:
        """The variables that items keep from one phase to another, and a statement that assigns each."""
        found = {}
        for name in sorted(self.variables - self._controls - self.shared.keys()):
            for phase in self.phases:
                others = [one for one in self.phases if name in one.stored and (one is not phase or phase.in_loop)]
                if others and phase.may_load_first(name):
                    found[name] = next(self._statements_that_assign({name}), self.tree)
        return found

    def refuse_kept(self, name: str, what: str) -> NoReturn:
        """Refuses a variable of a type that no array has."""
        self._refuse(
            self.kept()[name],
            f"{name} is used on both sides of a barrier and is {what}: items keep numbers, tuples of numbers, and "
            f"local arrays that get their names outside of loops and ifs; compute it again behind the barrier",
        )

    def functions(
        self, dimensions: int, kept: dict[str, int | MadeArray | None]
    ) -> tuple[ast.FunctionDef, list[ast.FunctionDef]]:
        """The function that runs the body for one group, and those of its phases, which it calls as _weir_phase0.

        ``kept``: for each variable that items keep how many numbers a tuple has, None for a number, or the local array.
        The group's function has the parameters of the body, then the shared arrays, then the arrays of what is kept:
        places_of.
        """
        arrays = [place for name, count in kept.items() for place in self.places_of(name, count)]
        shared = list(self.shared)
        functions = [self._on_host(self._function_of(phase, kept)) for phase in self.phases]
        calls = [self._call_of(k, one, dimensions) for k, one in enumerate(functions)]

        def filled(block: Sequence[ast.stmt | int]) -> list[ast.stmt]:
            made: list[ast.stmt] = []
            for one in block:
                if isinstance(one, int):
                    made += statements_of(calls[one], self.phases[one].statements[0])
                    continue
                if isinstance(one, (ast.If, ast.For, ast.While)):
                    one.body, one.orelse = filled(one.body), filled(one.orelse)
                made.append(one)
            return made or [ast.copy_location(ast.Pass(), self.tree)]

        group = self._function([*self.parameters, *shared, *arrays], filled(self._sequence))
        return group, functions

    @staticmethod
    def places_of(name: str, count: int | MadeArray | None) -> list[str]:
        return [f"_weir_{name}_{k}" for k in range(count if isinstance(count, int) else 1)]

    def _function(self, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
        made: Any = ast.parse(f"def {self.name}({', '.join(parameters)}): pass").body[0]
        for node in ast.walk(made):
            ast.copy_location(node, self.tree)
        made.body = body
        whole: ast.FunctionDef = ast.fix_missing_locations(made)
        return whole

    def _function_of(self, phase: Phase, kept: dict[str, int | MadeArray | None]) -> ast.FunctionDef:
        first, last = phase.statements[0], phase.statements[-1]
        statements = phase.statements
        before: list[ast.stmt] = []
        behind: list[ast.stmt] = []
        arrays: list[str] = []
        for name, count in kept.items():
            if name not in phase.names:
                continue
            places = self.places_of(name, count)
            arrays += places
            if isinstance(count, MadeArray):
                statements = [one for one in statements if self._local_call(one, name) is None]
                before += statements_of(f"{name} = {places[0]}[_weir_at]", first)
                continue
            if not phase.surely_stores_first(name):
                loaded = "".join(f"{place}[_weir_at], " for place in places)
                before += statements_of(
                    f"{name} = " + (f"{places[0]}[_weir_at]" if count is None else f"({loaded})"), first
                )
            if name in phase.stored:
                for k, place in enumerate(places):
                    behind += statements_of(f"{place}[_weir_at] = {name}" + ("" if count is None else f"[{k}]"), last)
        of_group = [*self.parameters[1:], *self.shared, *sorted(self._controls)]
        used = [name for name in dict.fromkeys(of_group) if name in phase.names]
        return self._function([self.item, "_weir_at", *used, *arrays], [*before, *statements, *behind])

    def _call_of(self, number: int, function: ast.FunctionDef, dimensions: int) -> str:
        """The loops over the items of a group that run a phase."""
        item = self.item
        axes = [""] if dimensions == 1 else [f"[{d}]" for d in range(dimensions)]
        extents = [f"{item}.local_range{axis}" for axis in axes]
        locals_ = [f"_weir_local{d}" for d in range(dimensions)]
        places = [f"_weir_place({item}.group_id{axis} * {extents[d]} + {locals_[d]})" for d, axis in enumerate(axes)]
        at = locals_[0]
        for d in range(1, dimensions):
            at = f"({at}) * {extents[d]} + {locals_[d]}"
        own = f"{tuple_text(places)}, {tuple_text(locals_)}"
        one = f"_weir_Item({own}, {item}.group_id, {item}.global_range, {item}.local_range)"
        arguments = "".join(f", {name.arg}" for name in function.args.args[2:])
        lines = [f"{'    ' * d}for {locals_[d]} in range({extents[d]}):" for d in range(dimensions)]
        return "\n".join([*lines, f"{'    ' * dimensions}_weir_phase{number}({one}, {at}{arguments})"])

    def plain(self) -> ast.FunctionDef:
        """The body of one item without barriers, in which types and uses are found."""
        return self._on_host(self.tree)

    def _on_host(self, function: ast.FunctionDef) -> ast.FunctionDef:
        """A copy without barriers, which calls the functions of `made`."""
        phases = self

        class Replace(ast.NodeTransformer):
            def visit_Expr(self, node: ast.Expr) -> ast.AST:
                return ast.copy_location(ast.Pass(), node) if phases._is_barrier(node) else self.generic_visit(node)

            def visit_Call(self, node: ast.Call) -> ast.AST:
                if not phases._makes_array(node):
                    return self.generic_visit(node)
                return ast.Call(ast.Name(phases._maker(node), ast.Load()), [], [])

        made: ast.FunctionDef = Replace().visit(copy.deepcopy(function))
        return ast.fix_missing_locations(made)
