"""The logger "weir": at its level DEBUG it gets a line for each device-side wait that Weir inserts, with the reason.

Waits are recorded only while that level is enabled, which depends on the levels of all loggers above and on
`logging.disable`. No public hook reports a change to these, and asking at each call into Weir would cost as much as
the call. But loggers keep a cache of which levels are enabled, `_cache`, and `logging` clears it whenever any level
changes: that is the moment to ask again. If a logger has no such cache, waits are always recorded, and the logger
drops them.
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
    """Records waits if the logger's level is enabled, else stops that."""
    _log_waits(logger.isEnabledFor(logging.DEBUG))


def said(line: str) -> None:
    """Called by the extension module with the line of a wait, on the thread whose call inserted it."""
    logger.debug(line, stacklevel=2)


if hasattr(logger, "_cache"):
    logger._cache = _Cache()
    look()
else:
    _log_waits(True)
