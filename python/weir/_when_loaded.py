"""What is to follow the import of another package, whether that was before or comes later."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from weir._weir import MissingLibrary


class _Watch(MetaPathFinder):
    """Finds no modules of its own: has the first import of the package followed by a call."""

    def __init__(self, package: str, then: Callable[[], None]) -> None:
        self._package = package
        self._then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name != self._package:
            return None
        with contextlib.suppress(ValueError):  # another thread was here first
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            self._then()

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


def when_loaded(package: str, then: Callable[[], None]) -> None:
    """Calls `then` now if the package is loaded, else once it is, in the thread that imports it."""
    if sys.modules.get(package) is not None:
        then()
    else:
        sys.meta_path.insert(0, _Watch(package, then))


def _register_with_numba() -> None:
    with contextlib.suppress(MissingLibrary):  # a Numba that cannot be used
        importlib.import_module("weir._numba")


def watch() -> None:
    """Has Numba's functions take arrays, streams and events of Weir, whichever of the two packages comes first."""
    when_loaded("numba", _register_with_numba)
