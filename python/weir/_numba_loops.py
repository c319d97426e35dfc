# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""The loops around a body of a kernel, for the host and for CUDA devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weir._kernels import Item
from weir._numba_modules import INT64, np, numba, types
from weir._numba_values import array_maker, number_maker
from weir._syntax import tuple_text

_HEADER = 6  # the words before those of arguments: three extents, and three of a group


def _item_type(dimensions: int) -> Any:
    one = INT64 if dimensions == 1 else types.UniTuple(INT64, dimensions)
    return types.NamedUniTuple(one, len(Item._fields), Item)


def index_type(dimensions: int, has_groups: bool) -> Any:
    if has_groups:
        return _item_type(dimensions)
    return INT64 if dimensions == 1 else types.UniTuple(INT64, dimensions)


class Arguments:
    """The types of a body's arguments, and the text that makes each of words."""

    def __init__(self, descriptions: tuple[Any, ...], word: Callable[[int], str]) -> None:
        self.types: list[Any] = []
        self.lines: list[str] = []
        self.names: list[str] = []
        self.globals: dict[str, Any] = {}
        self.words = _HEADER
        for k, (dtype, dimensions, layout) in enumerate(descriptions):
            element = numba.from_dtype(np.dtype(dtype))
            name = f"a{k}"
            if dimensions is None:
                count = max(np.dtype(dtype).itemsize // 8, 1)
                self.types.append(element)
                self.globals[f"make{k}"] = number_maker(element, count)
                first = ""
            else:
                count = 2 * dimensions
                self.types.append(types.Array(element, dimensions, layout))
                self.globals[f"make{k}"] = array_maker(self.types[-1])
                first = f"{word(self.words)}, "
                self.words += 1
            # A tuple of zeros that is cut to nothing has the type of an empty one.
            numbers = "".join(f"{word(self.words + one)}, " for one in range(count))
            self.lines.append(f"{name} = make{k}({first}({numbers}))")
            self.words += count
            self.names.append(name)


def _item(dimensions: int, groups: list[str], locals_: list[str]) -> str:
    extents, local = (tuple_text([f"{name}{d}" for d in range(dimensions)]) for name in ("n", "l"))
    places = tuple_text([f"_place({groups[d]} * l{d} + {locals_[d]})" for d in range(dimensions)])
    return f"Item({places}, {tuple_text(locals_)}, {tuple_text(groups)}, {extents}, {local})"


def _indented(lines: list[str], by: int) -> list[str]:
    return [" " * 4 * by + line for line in lines]


def host_text(dimensions: int, has_groups: bool, arguments: Arguments, of_group: list[str] | None = None) -> str:
    """Source of a function that runs the body for the indices, or the groups, begin to end - 1 of a space in C order.

    `of_group`: what makes the arrays that a group needs; the body then runs once for a group, and loops over its items.
    """
    names = "".join(f", {name}" for name in arguments.names)
    lines = [f"n{d} = _word(words, {d})" for d in range(dimensions)]
    lines += [f"l{d} = _word(words, {3 + d})" for d in range(dimensions)] if has_groups else []
    lines += arguments.lines
    if has_groups:
        groups = [f"g{d}" for d in range(dimensions)]
        items = [f"k{d}" for d in range(dimensions)]
        if of_group is None:
            inner = [f"{'    ' * d}for k{d} in range(l{d}):" for d in range(dimensions)]
            inner += _indented([f"body({_item(dimensions, groups, items)}{names})"], dimensions)
        else:
            lines += [f"items = {' * '.join(f'l{d}' for d in range(dimensions))}"]
            lines += [f"s{k} = {one}" for k, one in enumerate(of_group)]
            arrays = "".join(f", s{k}" for k in range(len(of_group)))
            inner = [f"body({_item(dimensions, groups, ['0'] * dimensions)}{names}{arrays})"]
        lines += ["for at in range(begin, end):"]
        lines += _indented(_split("at", [f"(n{d} // l{d})" for d in range(dimensions)], "g"), 1)
        lines += _indented(inner, 1)
    elif dimensions == 1:
        lines += ["for i in range(begin, end):", f"    body(_place(i){names})"]
    else:
        # Row by row, so that the inner loop counts by ones.
        last = dimensions - 1
        index = tuple_text([f"_place(i{d})" for d in range(dimensions)])
        lines += [
            "at = begin",
            "while at < end:",
            f"    row = at // n{last}",
            f"    first = at - row * n{last}",
            f"    behind = min(n{last}, first + end - at)",
            *_indented(_split("row", [f"n{d}" for d in range(last)], "i"), 1),
            f"    for i{last} in range(first, behind):",
            f"        body({index}{names})",
            "    at += behind - first",
        ]
    return "\n".join(["def loop(begin, end, words):", *_indented(lines, 1)])


def _split(number: str, extents: list[str], name: str) -> list[str]:
    """Lines that find the places along each dimension of a number in C order."""
    lines = []
    rest = number
    for d in range(len(extents) - 1, 0, -1):
        lines += [f"rest{d} = {rest} // {extents[d]}", f"{name}{d} = {rest} - rest{d} * {extents[d]}"]
        rest = f"rest{d}"
    return [*lines, f"{name}0 = {rest}"]


def cuda_text(dimensions: int, has_groups: bool, arguments: Arguments) -> str:
    """Source of a kernel that runs the body for the index of its thread. Each of its parameters is a word."""
    names = "".join(f", {name}" for name in arguments.names)
    lines = [f"n{d} = w{d}" for d in range(dimensions)]
    if has_groups:
        lines += [f"l{d} = w{3 + d}" for d in range(dimensions)]
        axes = "xyz"[:dimensions][::-1]  # CUDA's x is the last dimension
        lines += [f"g{d} = int64(cuda.blockIdx.{axis})" for d, axis in enumerate(axes)]
        lines += [f"k{d} = int64(cuda.threadIdx.{axis})" for d, axis in enumerate(axes)]
        inside = " and ".join(f"g{d} * l{d} + k{d} < n{d}" for d in range(dimensions))
        index = _item(dimensions, [f"g{d}" for d in range(dimensions)], [f"k{d}" for d in range(dimensions)])
        split: list[str] = []
    else:
        lines += ["at = int64(cuda.blockIdx.x) * int64(cuda.blockDim.x) + int64(cuda.threadIdx.x)"]
        inside = f"at < {' * '.join(f'n{d}' for d in range(dimensions))}"
        split = _split("at", [f"n{d}" for d in range(dimensions)], "i")
        index = tuple_text([f"_place(i{d})" for d in range(dimensions)])
    lines += [f"if {inside}:", *_indented([*split, *arguments.lines, f"body({index}{names})"], 1)]
    words = ", ".join(f"w{k}" for k in range(arguments.words))
    return "\n".join([f"def weir_body({words}):", *_indented(lines, 1)])
