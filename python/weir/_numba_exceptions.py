# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""Exceptions that compiled bodies raise."""

from __future__ import annotations

import ctypes
from types import FunctionType

from weir._bodies import lines_of
from weir._numba_modules import serialize


class _ExceptionInfo(ctypes.Structure):
    """What compiled code leaves where it raises: numba/core/callconv.py, excinfo_t."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("arguments", ctypes.c_void_p),
        ("unwrap", ctypes.c_void_p),
        ("has_arguments", ctypes.c_int32),
    )


def exception_of(body: FunctionType, status: int, address: int) -> BaseException:
    """The exception that a call of the compiled body left, with a note of where: of its own exceptions, those of an
    index out of range or of a division by 0, Numba keeps no line."""
    if status < 1 or address == 0:
        return RuntimeError(f"the body ended with Numba's status {status}")
    info = _ExceptionInfo.from_address(address)
    pickled = ctypes.string_at(info.pickled, info.size)
    if info.has_arguments > 0:
        unwrap = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(info.unwrap)
        found = serialize.runtime_build_excinfo_struct(pickled, unwrap(info.arguments))
    else:
        found = serialize.loads(pickled)
    kind, values, place = found
    made: BaseException = kind(*(values or ())) if isinstance(kind, type) else RuntimeError(str(kind))
    if hasattr(made, "add_note"):  # from Python 3.11 on
        first, last = lines_of(body)
        where = (body.__name__, body.__code__.co_filename, f"lines {first} to {last}")
        function, file, lines = where if place is None else (place[0], place[1], f"line {place[2]}")
        made.add_note(f"in {function}, {file}, {lines}")
    return made
