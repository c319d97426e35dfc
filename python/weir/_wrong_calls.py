"""Error messages, in the words that NumPy uses, for calls whose arguments fit no parameters."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from weir import _weir
from weir._weir import ArgumentTypeError

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PLAIN: dict[str, type | tuple[type, ...]] = {"bytes": bytes, "dict": dict, "list": list, "str": str, "tuple": tuple}


def _class_named(name: str) -> type | None:
    """A class of Weir's."""
    for place in (_weir, _weir.memory, _weir.fft, _weir.testing):
        found = getattr(place, name, None)
        if isinstance(found, type):
            return found
    return None


def _type_name(of: type) -> str:
    name = of.__qualname__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__qualname__}"
    return name.replace("weir._weir.", "weir.")


def _described(value: object) -> str:
    return "None" if value is None else _type_name(type(value))


def _fits(value: object, annotation: ast.expr | None) -> bool:
    """Whether a parameter with this annotation takes the value; true for annotations that are not known here."""
    match annotation:
        case ast.Constant(None):
            return value is None
        case ast.BinOp(left, ast.BitOr(), right):
            return _fits(value, left) or _fits(value, right)
        case ast.Subscript(ast.Name("Literal"), choices):
            given = choices.elts if isinstance(choices, ast.Tuple) else [choices]
            return any(isinstance(one, ast.Constant) and one.value == value for one in given)
        case ast.Subscript(of):
            return _fits(value, of)
        case ast.Attribute(_, name) | ast.Name(name):
            if name == "int":
                return hasattr(value, "__index__")
            if name == "float":
                return hasattr(value, "__float__") or hasattr(value, "__index__")
            if name == "bool":
                return isinstance(value, bool) or type(value).__name__.startswith("bool")
            if name == "Callable":
                return callable(value)
            wanted = _PLAIN.get(name) or _class_named(name)
            return wanted is None or isinstance(value, wanted)
    return True


def _expected(annotation: ast.expr) -> str:
    """The annotation as it is to be read."""
    text = ast.unparse(annotation)
    text = re.sub(r"\bweir\._weir\.(\w+\.)*", "", text)
    return re.sub(r"[A-Z]\w*", lambda name: f"weir.{name[0]}" if _class_named(name[0]) else name[0], text)


class _Signature:
    """The parameters of one overload, without ``self``."""

    def __init__(self, text: str, is_method: bool) -> None:
        # Nanobind writes \0, \1 ... for the values of defaults.
        function = ast.parse(re.sub(r"\\\d+", "...", text) + ": ...").body[0]
        assert isinstance(function, ast.FunctionDef)
        of = function.args
        self.positional = [*of.posonlyargs, *of.args][1 if is_method else 0 :]
        self.by_position_alone = {one.arg for one in of.posonlyargs}
        self.by_name_alone = of.kwonlyargs
        self.takes_more = of.vararg is not None
        self.takes_names = of.kwarg is not None
        needed = len(self.positional) - len(of.defaults)
        self.least = max(needed, 0)
        self.needed_names = [one.arg for one, value in zip(of.kwonlyargs, of.kw_defaults, strict=True) if value is None]

    def objection(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[int, str]:
        """What is wrong with these arguments, and how far they were found right."""
        names = [one.arg for one in self.positional]
        known = {*names, *(one.arg for one in self.by_name_alone)}
        for name in kwargs:
            if name in self.by_position_alone and not self.takes_names:
                return 0, f"got a positional-only argument passed as keyword argument: '{name}'"
            if name not in known and not self.takes_names:
                return 0, f"got an unexpected keyword argument '{name}'"
            if name in names[: len(args)]:
                return 2, f"got multiple values for argument '{name}'"
        if len(args) > len(names) and not self.takes_more:
            return 1, ""
        for at, name in enumerate(names[: self.least]):
            if at >= len(args) and name not in kwargs:
                return 2, f"missing required argument '{name}' (pos {at + 1})"
        for name in self.needed_names:
            if name not in kwargs:
                return 2, f"missing required keyword argument '{name}'"
        given = {one.arg: value for one, value in zip(self.positional, args, strict=False)} | dict(kwargs)
        for one in (*self.positional, *self.by_name_alone):
            if one.arg in given and one.annotation and not _fits(given[one.arg], one.annotation):
                wanted, was = _expected(one.annotation), _described(given[one.arg])
                return 3, f"argument '{one.arg}' must be {wanted}, not {was}"
        described = [_described(one) for one in args] + [f"{name}={_described(one)}" for name, one in kwargs.items()]
        return 4, f"cannot take these arguments: {', '.join(described) or 'none'}"


def _counted(signatures: Iterable[_Signature], given: int) -> str:
    """That a call has too many arguments without names."""
    most = max(len(one.positional) for one in signatures)
    least = min(one.least for one in signatures)
    takes = f"{most}" if least == most else f"from {least} to {most}"
    return (
        f"takes {takes} positional argument{'' if takes == '1' else 's'} but {given} "
        f"{'was' if given == 1 else 'were'} given"
    )


def _words(
    name: str, texts: Iterable[str], is_method: bool, args: Sequence[object], kwargs: Mapping[str, object]
) -> str:
    signatures = [_Signature(text, is_method) for text in texts]
    _, nearest = max(one.objection(args, kwargs) for one in signatures)
    return f"{name}() {nearest or _counted(signatures, len(args))}"


def of_extension(function: Any, args: list[object], kwargs: dict[str, object]) -> str:
    """What is wrong with a call of a function of the extension, with ``self`` among the arguments."""
    owner, _, name = function.__qualname__.rpartition(".")
    texts = [signature for signature, *_ in function.__nb_signature__]
    if type(function).__name__ != "nb_method":
        return _words(function.__qualname__, texts, False, args, kwargs)
    cls: Any = functools.reduce(getattr, owner.split("."), sys.modules[function.__module__])
    shown = owner if name == "__init__" else function.__qualname__
    if not args or not isinstance(args[0], cls):
        given = f", not {_described(args[0])}" if args else ""
        return f"{shown}() needs an object of {_type_name(cls)} as its first argument{given}"
    return _words(shown, texts, True, args[1:], kwargs)


def explained(function: _Function) -> _Function:
    """The same function, whose calls with wrong arguments raise what those of the extension raise. Also of a class's
    ``__init__`` or ``__new__``: messages then name the class."""
    signature = inspect.signature(function)
    makes = function.__name__ in ("__init__", "__new__")
    name = function.__qualname__.split(".")[-2] if makes else function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                given = args[1:] if makes else args
                words = _words(name, [f"def {name}{signature}"], makes, given, kwargs)
            else:
                raise
        raise ArgumentTypeError(words)

    return cast("_Function", call)
