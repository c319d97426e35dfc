# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""How a body of a kernel uses its arrays: what it reads and what it writes."""

from __future__ import annotations

from typing import Any

from weir._numba_modules import ir, types
from weir._weir import ArgumentError

# How a body uses an array: body_arguments.cpp has the same numbers.
READS, WRITES, UNCLEAR, COVERS = 1, 2, 4, 8


def _may_hold_array(of: Any) -> bool:
    """Whether a value of this type could refer to memory of an array. What is not known could."""
    if isinstance(of, (types.BaseTuple, types.BaseAnonymousTuple)):
        return any(_may_hold_array(one) for one in of)
    return not isinstance(
        of,
        (
            types.Number,
            types.Boolean,
            types.NoneType,
            types.UnicodeType,
            types.SliceType,
            types.RangeType,
            types.Literal,
        ),
    )


_FACTS = {"shape", "size", "ndim", "strides", "itemsize", "nbytes", "dtype"}  # tell nothing of elements


class _Uses:
    """What one compiled function does with arrays among its parameters."""

    def __init__(self, compiled: Any, parameters: int, has_groups: bool | None) -> None:
        annotation = compiled.type_annotation
        self.typemap = annotation.typemap
        self.calltypes = annotation.calltypes
        self.flags = [0] * parameters
        self.aliases: dict[str, frozenset[int]] = {}  # which parameters' memory a variable may refer to
        self.exact: dict[str, int] = {}  # variables that are a parameter, as it is
        self.items: set[str] = set()
        self.indices: set[str] = set()  # variables that are the index, or an item's place among all
        self.has_groups = has_groups
        entry = min(annotation.blocks)
        before = None
        while before != self._state():
            before = self._state()
            for label, block in annotation.blocks.items():
                for statement in block.body:
                    self._look_at(statement, label == entry)

    def _state(self) -> tuple[Any, ...]:
        return dict(self.aliases), list(self.flags), dict(self.exact), set(self.indices), set(self.items)

    def _of(self, variable: Any) -> frozenset[int]:
        return self.aliases.get(variable.name, frozenset())

    def _note(self, parameters: frozenset[int] | set[int], flag: int) -> None:
        for one in parameters:
            self.flags[one] |= flag

    def _bind(self, target: Any, parameters: frozenset[int]) -> None:
        if parameters and _may_hold_array(self.typemap.get(target.name)):
            self.aliases[target.name] = self._of(target) | parameters

    def _look_at(self, statement: Any, always: bool) -> None:
        if isinstance(statement, ir.Assign):
            self._assign(statement)
        elif isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
            self._note(self._of(statement.target), WRITES)
            self._note(self._of(statement.value), READS)
            whole = self.exact.get(statement.target.name)
            index = getattr(statement, "index", None)
            is_index = isinstance(index, ir.Var) and index.name in self.indices
            if always and whole is not None and is_index and isinstance(statement, ir.SetItem):
                self._note({whole}, COVERS)
        elif isinstance(statement, (ir.Del, ir.Jump, ir.Branch)):
            pass
        else:
            for variable in statement.list_vars():
                self._note(self._of(variable), UNCLEAR)

    def _assign(self, statement: Any) -> None:
        value, target = statement.value, statement.target
        if isinstance(value, ir.Arg):
            if _may_hold_array(self.typemap.get(target.name)):
                self.aliases[target.name] = self._of(target) | {value.index}
                self.exact[target.name] = value.index
            if value.index == 0:
                (self.items if self.has_groups else self.indices).add(target.name)
        elif isinstance(value, ir.Var):
            self._bind(target, self._of(value))
            for same in (self.items, self.indices):
                if value.name in same:
                    same.add(target.name)
            if value.name in self.exact:
                self.exact[target.name] = self.exact[value.name]
        elif isinstance(value, ir.Expr):
            self._evaluate(value, target)
        elif not isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            for variable in value.list_vars() if hasattr(value, "list_vars") else ():
                self._note(self._of(variable), UNCLEAR)

    def _evaluate(self, value: Any, target: Any) -> None:
        used = frozenset().union(*(self._of(one) for one in value.list_vars()))
        if value.op == "getattr" and value.attr == "global_id" and value.value.name in self.items:
            self.indices.add(target.name)
        if value.op == "getattr" and value.attr in _FACTS:
            return
        holds = _may_hold_array(self.typemap.get(target.name))
        if value.op == "getattr" and not holds:
            self._note(used, UNCLEAR)  # the address of the elements, for one
        elif value.op in ("getitem", "static_getitem", "typed_getitem", "getattr", "getiter", "iternext", "pair_first"):
            self._bind(target, used)
            if not holds:
                self._note(used, READS)
        elif value.op in ("cast", "phi", "build_tuple", "exhaust_iter", "pair_second"):
            self._bind(target, used)
        elif value.op in ("binop", "unary"):
            self._note(used, READS)
        elif value.op == "inplace_binop":
            self._note(self._of(value.lhs), READS | WRITES)
            self._note(self._of(value.rhs), READS)
            self._bind(target, self._of(value.lhs))
        elif value.op == "call":
            self._call(value, target, used)
        else:
            self._note(used, UNCLEAR)
            self._bind(target, used)

    def _call(self, value: Any, target: Any, used: frozenset[int]) -> None:
        function = self.typemap.get(value.func.name)
        if isinstance(function, types.Function) and function.typing_key is len:
            return
        signature = self.calltypes.get(value)
        if isinstance(function, types.Dispatcher) and function.dispatcher.targetoptions.get("parallel"):
            name = function.dispatcher.__name__
            raise ArgumentError(
                f"the kernel calls {name}, which is compiled with parallel=True: threads share the indices of a "
                f"kernel already, and "
                f"some of Numba's own cannot be used by several at once; compile {name} with numba.njit alone"
            )
        inner = None
        if isinstance(function, types.Dispatcher) and signature is not None and not value.kws and not value.vararg:
            inner = function.dispatcher.overloads.get(tuple(signature.args))
        # What Numba takes from its cache of files has no statements: what it does stays unclear.
        if inner is None or len(signature.args) != len(value.args) or not hasattr(inner.type_annotation, "typemap"):
            self._note(used, UNCLEAR)
            self._bind(target, used)
            return
        within = _Uses(inner, len(value.args), None).flags
        for variable, flags in zip(value.args, within, strict=True):
            self._note(self._of(variable), flags & ~COVERS)
        if _may_hold_array(signature.return_type):
            self._note(used, UNCLEAR)
        self._bind(target, used)


def uses_of(dispatcher: Any, argument_types: tuple[Any, ...], has_groups: bool) -> list[int]:
    """How the body uses each argument behind its index. What cannot be found out is unclear, and counts as read "
    "and written."""
    try:
        compiled = dispatcher.overloads[argument_types]
        return _Uses(compiled, len(argument_types), has_groups).flags[1:]
    except (AttributeError, KeyError, TypeError, RecursionError):  # another Numba: its parts have other names
        return [UNCLEAR] * (len(argument_types) - 1)
