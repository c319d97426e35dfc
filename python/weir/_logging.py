"""The logger "weir": at its level DEBUG it is told of each device-side wait that Weir inserts, and why.

Waits are noted only while that level is enabled, which depends on the levels of all loggers above and on
`logging.disable`. Nothing public tells of a change to these, and to ask at each call into Weir would cost as much as
the call. But loggers keep a cache of which levels are enabled, `_cache`, and `logging` clears it whenever any level
changes: that is the moment to look again. Where a logger has no such cache, waits are noted always, and the logger
leaves them out.
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


if hasattr(logger, "_cache"):
    logger._cache = _Cache()
    look()
else:
    _log_waits(True)
