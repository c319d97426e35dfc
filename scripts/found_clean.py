"""Remembers what a check found nothing wrong with, by the name of its content: in a folder below WEIR_LINT_CACHE
(~/.cache/weir-lint), so that another clone of the same sources does not check again."""

from __future__ import annotations

import hashlib
import os
import pathlib


def content_name(*parts: bytes) -> str:
    """The name of a content: other parts have another one, the same parts joined in another way too."""
    name = hashlib.sha256()
    for part in parts:
        name.update(len(part).to_bytes(8, "little") + part)
    return name.hexdigest()


class FoundClean:
    """The names that one check has noted."""

    def __init__(self, check: str) -> None:
        named = os.environ.get("WEIR_LINT_CACHE")
        self._folder = (pathlib.Path(named) if named else pathlib.Path.home() / ".cache/weir-lint") / check

    def __contains__(self, name: str | None) -> bool:
        return name is not None and (self._folder / name).exists()

    def note(self, name: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / name).touch()
