"""Events that coroutines wait for."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref

import pytest
import weir
from eventually import eventually
from weir.testing import Gate


def test_the_loop_goes_on_while_an_event_is_awaited(device: weir.Device) -> None:
    async def main() -> list[str]:
        stream = weir.Stream(device)
        gate = Gate()
        gate.hold(stream)
        event = stream.record()
        order = []

        async def wait() -> None:
            await event
            order.append("event")

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        order.append("loop")
        gate.open()
        await waiting
        return order

    assert asyncio.run(main()) == ["loop", "event"]


def test_many_events_are_awaited_without_a_thread_for_each(device: weir.Device) -> None:
    async def main() -> None:
        gate = Gate()
        streams = [weir.Stream(device) for _ in range(50)]
        for stream in streams:
            gate.hold(stream)
        events = [stream.record() for stream in streams]
        before = threading.active_count()
        waiting = asyncio.gather(*events)
        await asyncio.sleep(0)
        assert threading.active_count() == before
        gate.open()
        await waiting
        assert all(event.done for event in events)

    asyncio.run(main())


def test_an_event_that_is_over_does_not_suspend() -> None:
    async def main() -> None:
        event = weir.Event()
        with pytest.raises(StopIteration):
            event.__await__().send(None)
        await event

    asyncio.run(main())


def test_a_wait_can_be_cancelled_and_the_others_go_on(device: weir.Device) -> None:
    async def main() -> None:
        stream = weir.Stream(device)
        gate = Gate()
        gate.hold(stream)
        event = stream.record()

        async def wait() -> None:
            await event

        given_up, waits = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(0)
        given_up.cancel()
        gate.open()
        await waits
        with pytest.raises(asyncio.CancelledError):
            await given_up

    asyncio.run(main())


def test_a_loop_does_not_keep_the_stream_that_was_current_at_its_first_wait(device: weir.Device) -> None:
    async def main() -> weakref.ref[weir.Stream]:
        gate = Gate()
        with weir.Stream(device) as stream:
            gate.hold(stream)
            event = stream.record()
            asyncio.get_running_loop().call_soon(gate.open, context=contextvars.Context())
            await event
        return weakref.ref(stream)

    async def outer() -> None:
        seen = await asyncio.create_task(main())
        eventually(lambda: seen() is None)

    asyncio.run(outer())


def test_each_loop_has_its_own(device: weir.Device) -> None:
    async def main() -> None:
        await weir.Stream(device).record()

    for _ in range(3):
        asyncio.run(main())
    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
