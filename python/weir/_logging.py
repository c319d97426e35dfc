"""The logger "weir": at its level DEBUG it is told of each device-side wait that Weir inserts, and why.

Waits are noted only while that level is enabled. Loggers keep a cache of which levels are, and `logging` clears it
whenever any level changes: that is the moment to look again, so that calls into Weir need not ask.
"""

from __future__ import annotations

import logging

from weir._weir import _log_waits

logger = logging.getLogger("weir")


class _Cache(dict[int, bool]):
    """The logger's cache: level -> enabled."""

    def clear(self) -> None:
        super().clear()
        look()


def look() -> None:
    """Has waits noted if the logger wants them."""
    _log_waits(logger.isEnabledFor(logging.DEBUG))


def said(line: str) -> None:
    """Called by the extension module with the line of a wait, on the thread whose call inserted it."""
    logger.debug(line, stacklevel=2)


logger._cache = _Cache()  # type: ignore[attr-defined]
look()
