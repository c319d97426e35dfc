"""The logger "weir": at its level INFO it gets a line for each library call, with the time that it took; at its level
DEBUG also one for each device-side wait that Weir inserts, with the reason.

Calls and waits are recorded only while their level is enabled, which depends on the levels of all loggers above and on
`logging.disable`. No public hook reports a change to these, and asking at each call into Weir would cost as much as
the call. But loggers keep a cache of which levels are enabled, `_cache`, and `logging` clears it whenever any level
changes: that is the moment to ask again. If a logger has no such cache, calls and waits are always recorded, and
the logger drops them.
"""

from __future__ import annotations

import logging

from weir._weir import _log_calls, _log_waits

logger = logging.getLogger("weir")


class _Cache(dict[int, bool]):
    """The logger's cache: level -> enabled."""

    def clear(self) -> None:
        super().clear()
        look()


def look() -> None:
    """Records what the logger's level is enabled for, and nothing else."""
    _log_calls(logger.isEnabledFor(logging.INFO))
    _log_waits(logger.isEnabledFor(logging.DEBUG))


def said(line: str) -> None:
    """Called by the extension module with the line of a wait, on the thread whose call inserted it."""
    logger.debug(line, stacklevel=2)


def said_of_call(module: str, name: str, seconds: float, failed: bool) -> None:
    """Called by the extension module at the end of a library call, on the thread of the call."""
    logger.info("%s.%s %s after %.3f ms", module, name, "failed" if failed else "returned", seconds * 1e3, stacklevel=2)


if hasattr(logger, "_cache"):
    logger._cache = _Cache()
    look()
else:
    _log_calls(True)
    _log_waits(True)
