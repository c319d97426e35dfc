"""Ctrl-C while a call waits: sent again and again, and raised once the call has been seen not to come back."""

from __future__ import annotations

import signal
import threading
import types
from collections.abc import Callable

import pytest


def interrupt(call: Callable[[], object]) -> None:
    """Calls `call`, which waits for what does not come about before this returns, and has Ctrl-C end it."""
    main = threading.main_thread().ident
    assert main is not None
    over = threading.Event()
    seen = 0

    def wait() -> None:
        call()

    def handler(_number: int, frame: types.FrameType | None) -> None:
        nonlocal seen
        while frame is not None and frame.f_code is not wait.__code__:
            frame = frame.f_back
        if frame is not None:
            seen += 1
            if seen == 3:  # by then it is in the call, which would not come back
                raise KeyboardInterrupt

    def send() -> None:
        while not over.wait(0.01):
            signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        over.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
