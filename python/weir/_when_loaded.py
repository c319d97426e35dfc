"""Numba's functions take arrays, streams and events of Weir, whichever of the two packages is imported first."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from weir._weir import MissingLibrary


def _register() -> None:
    with contextlib.suppress(MissingLibrary):  # a Numba that cannot be used
        importlib.import_module("weir._numba")


class _Watch(MetaPathFinder):
    """Finds no modules of its own: has the import of Numba followed by that of ``weir._numba``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name != "numba":
            return None
        with contextlib.suppress(ValueError):  # another thread was here first
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Registers Weir with Numba: now if Numba is loaded, else once it is."""
    if sys.modules.get("numba") is not None:
        _register()
    else:
        sys.meta_path.insert(0, _Watch())
