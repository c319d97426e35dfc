"""Whether a thread of the host waits, and a gate that opens once it does."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import weir
from eventually import eventually
from weir.testing import Gate


def opened_when_the_host_waits(x: weir.Array, gate: Gate) -> threading.Thread:
    """Opens the gate once a call that hands `x` over waits for what the gate holds."""

    def opens() -> None:
        eventually(lambda: weir.explain(x).host_blocked)
        gate.open()

    thread = threading.Thread(target=opens)
    thread.start()
    return thread


def comes_to_wait(thread: threading.Thread) -> bool:
    """Whether the thread sleeps, and stays asleep for 20 ms; False if it ends before.

    A thread that has to wait cannot have ended, so the load of the machine never makes a test wrong that expects it.
    """
    since, before = time.monotonic(), [""]
    while thread.is_alive():
        try:
            status = Path(f"/proc/self/task/{thread.native_id}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ends at this moment
        now = [line for line in status if line.startswith(("State:\tS", "voluntary"))]
        if len(now) < 2 or now != before:
            since, before = time.monotonic(), now
        elif time.monotonic() - since > 0.02:
            return thread.is_alive()
    return False
