# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""Bodies whose items wait for each other, and the arrays that the items of a group share, on the host."""

from __future__ import annotations

import ast
import re
import sys
from types import FunctionType
from typing import Any

from weir._kernels import Item
from weir._numba_modules import np, numba, types
from weir._numba_values import _place, local_maker, many_maker
from weir._phases import MadeArray, Phases
from weir._syntax import known_names
from weir._weir import ArgumentError


def _kind_of(function: Any) -> str | None:
    """Whether a function of Numba's CUDA target is the barrier of a group, or makes an array for a group or an item."""
    cuda = sys.modules.get("numba.cuda")
    if cuda is None or function is None:
        return None
    kinds = {
        "barrier": getattr(cuda, "syncthreads", None),
        "shared": getattr(cuda.shared, "array", None),
        "local": getattr(cuda.local, "array", None),
    }
    return next((kind for kind, one in kinds.items() if function is one), None)


def phases_of(body: FunctionType, has_groups: bool) -> Phases | None:
    """The body, divided at its barriers; None if it neither has barriers nor makes arrays."""
    cuda = sys.modules.get("numba.cuda")
    if cuda is None:
        return None
    code = body.__code__
    names = {*code.co_names, *code.co_freevars}
    known = known_names(body)
    if names.isdisjoint({"syncthreads", "shared", "local"}) and not any(
        any(known.get(name) is one for one in (cuda.shared, cuda.local)) or _kind_of(known.get(name)) for name in names
    ):
        return None
    phases = Phases(body, _kind_of)
    if not phases.is_divided:
        return phases if phases.made else None
    if not has_groups:
        raise ArgumentError(
            f"the kernel {body.__name__} has {'a barrier' if phases.barriers else 'a shared array'}, and is launched "
            f"over a Range, which has no groups: pass weir.NdRange(items, items of a group)"
        )
    return phases


def defined_function(tree: ast.FunctionDef, phases: Phases, more: dict[str, object]) -> FunctionType:
    """The function of a syntax tree, whose lines are those of the body."""
    code = compile(ast.Module([tree], []), phases.body.__code__.co_filename, "exec")
    makers = {name: local_maker(_element(made), made.shape) for name, made in phases.made.items()}
    space = {**phases.known, **makers, **more}
    exec(code, space)
    made = space[tree.name]
    assert isinstance(made, FunctionType)
    return made


def _element(made: MadeArray) -> Any:
    """Numba's type of the elements."""
    return made.dtype if isinstance(made.dtype, types.Type) else numba.from_dtype(np.dtype(made.dtype))


class _Kept:
    """A variable that items keep over a barrier: a number, or a tuple of them."""

    def __init__(self, name: str, plain: Any) -> None:
        # Numba numbers the values that a variable has: total, total.1, total.2.
        found = plain.type_annotation.typemap.items()
        seen = [types.unliteral(one) for each, one in found if re.fullmatch(name + r"(\.\d+)*", each)]
        whole: Any = plain.typing_context.unify_types(*seen) if seen else None
        is_tuple = isinstance(whole, types.BaseTuple)
        self.parts = [types.unliteral(one) for one in whole] if is_tuple else [whole]
        self.count = len(self.parts) if is_tuple else None
        self.is_possible = all(isinstance(one, (types.Number, types.Boolean)) for one in self.parts)
        self.text = " or ".join(sorted({str(one) for one in seen})) or "of a type that is not known"


def _kept_by_items(phases: Phases, plain: Any) -> tuple[Phases, dict[str, _Kept | MadeArray]]:
    """What items keep over barriers: numbers, and local arrays. Of other variables, such as parts of arrays, the group
    has one, if they are the same for all its items: then the body is divided in another way."""
    of_group: frozenset[str] = frozenset()
    while True:
        kept = {name: phases.local_array(name) or _Kept(name, plain) for name in phases.kept()}
        others = {name: one for name, one in kept.items() if isinstance(one, _Kept) and not one.is_possible}
        if not others:
            return phases, kept
        of_group |= others.keys()
        try:
            phases = Phases(phases.body, _kind_of, of_group)
        except ArgumentError:
            phases.refuse_kept(*next((name, one.text) for name, one in others.items()))


def group_function(
    phases: Phases, options: dict[str, Any], plain: Any, dimensions: int
) -> tuple[Any, list[str], dict[str, Any]]:
    """The function that runs the body for a group, texts that make the arrays it takes behind its arguments, and what
    these texts use."""
    phases, kept = _kept_by_items(phases, plain)
    known: dict[str, Any] = {}
    makers: list[str] = []
    for name, shared in phases.shared.items():
        known[f"shared_{name}"] = local_maker(_element(shared), shared.shape)
        makers.append(f"shared_{name}()")
    for name, one in kept.items():
        arrays = [(_element(one), one.shape)] if isinstance(one, MadeArray) else [(part, ()) for part in one.parts]
        for k, (element, shape) in enumerate(arrays):
            known[f"kept_{name}_{k}"] = many_maker(element, shape)
            makers.append(f"kept_{name}_{k}(items)")
    group, functions = phases.functions(
        dimensions, {name: one if isinstance(one, MadeArray) else one.count for name, one in kept.items()}
    )
    jitted = {
        f"_weir_phase{k}": numba.njit(**options)(defined_function(one, phases, {})) for k, one in enumerate(functions)
    }
    body = defined_function(group, phases, {"_weir_Item": Item, "_weir_place": _place, **jitted})
    return numba.njit(**options)(body), makers, known
