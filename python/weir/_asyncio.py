"""Events that coroutines wait for: one file descriptor for each event loop, and no thread."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import weakref

from weir._weir import Event, _Wakeups


class _Waiting:
    """The futures of one event loop, by the number that the file descriptor reports for each."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wakeups = _Wakeups()
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._numbers = itertools.count()
        # In a context of its own: the loop keeps it, and with it scopes such as the task's current stream.
        contextvars.Context().run(loop.add_reader, self._wakeups.descriptor, self._wake)

    def future(self, event: Event, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        number = next(self._numbers)
        future: asyncio.Future[None] = loop.create_future()
        self._futures[number] = future
        try:
            self._wakeups.tell_when_over(event, number)
        except BaseException:
            del self._futures[number]
            raise
        return future

    def _wake(self) -> None:
        for number in self._wakeups.take():
            future = self._futures.pop(number)
            if not future.done():  # it may have been cancelled
                future.set_result(None)


_waiting: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiting] = weakref.WeakKeyDictionary()


async def wait(event: Event) -> None:
    """Return once the event is over; the loop goes on meanwhile. Raises OperationError if the operation failed."""
    if not event.done:
        loop = asyncio.get_running_loop()
        waiting = _waiting.get(loop)
        if waiting is None:
            waiting = _waiting[loop] = _Waiting(loop)
        await waiting.future(event, loop)
    event.synchronize()  # over: raises what failed
