"""Where something stands in the body of a kernel, for messages."""

from __future__ import annotations

import dis
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType

from weir._syntax import known_names
from weir._weir import Array

_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
_YIELDS = {"YIELD_VALUE", "YIELD_FROM", "GET_YIELD_FROM_ITER"}


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


def _line_at(code: CodeType, offset: int) -> int:
    found = code.co_firstlineno
    for start, line in dis.findlinestarts(code):
        if start > offset:
            break
        found = found if line is None else line
    return found


def lines_of(body: FunctionType) -> tuple[int, int]:
    """The first and the last line of a function."""
    code = body.__code__
    last = max(line or 0 for one in _codes_in(code) for _, line in dis.findlinestarts(one))
    return code.co_firstlineno, max(code.co_firstlineno, last)


def place_in(body: FunctionType, line: int) -> str:
    """'line 12, "y[i] = q"'."""
    text = linecache.getline(body.__code__.co_filename, line).strip()
    return f"line {line}" + (f', "{text}"' if text else "")


def line_of_yield(body: FunctionType) -> int:
    """The line of the first yield; that of the function if it has none."""
    code = body.__code__
    lines = [_line_at(code, one.offset) for one in dis.get_instructions(code) if one.opname in _YIELDS]
    return min(lines, default=code.co_firstlineno)


def mistaken_name(body: FunctionType) -> str | None:
    """What is wrong with a name that a body uses and that is not its own: it is not defined, or is an array of Weir."""
    known = known_names(body)
    own = {name for code in _codes_in(body.__code__) for name in code.co_cellvars}
    for code in _codes_in(body.__code__):
        for one in dis.get_instructions(code):
            name = one.argval
            if one.opname not in _LOADS or name in own:
                continue
            place = f"the kernel {body.__name__}, {place_in(body, _line_at(code, one.offset))}"
            if name not in known:
                return f"{place}: the name {name} is not defined: define or import it, or make it a parameter"
            if isinstance(known[name], Array):
                return f"{place}: {name} is a weir.Array, which a body does not know by name: make it a parameter"
    return None
