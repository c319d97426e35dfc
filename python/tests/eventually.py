"""Waits for states that a thread of Weir's or of a driver's brings about, and that no call waits for."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import weir


def eventually(condition: Callable[[], bool]) -> None:
    """Calls into Weir until it is so; fails if it is not after a minute."""
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, "it never comes about"
        weir.current_stream()  # each call into Weir releases what it may
        gc.collect()
