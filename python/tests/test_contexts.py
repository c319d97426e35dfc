"""A `with` of Weir holds for its Python context: an asyncio task, or a thread outside of one (rule S7)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import weir
from weir.testing import Gate

Turn = Callable[[], Awaitable[None]]
Task = Callable[[Turn], Awaitable[None]]


def in_turns(first: Task, second: Task) -> None:
    """Runs two tasks in one loop. Each `await turn()` lets the other one go on to its next turn."""

    async def main() -> None:
        async def turn() -> None:
            await asyncio.sleep(0)

        await asyncio.gather(first(turn), second(turn))

    asyncio.run(main())


def test_s7_two_tasks_have_a_current_stream_each(device: weir.Device) -> None:
    default = weir.current_stream(device)
    seen = []

    async def task(turn: Turn, stream: weir.Stream, outer: int, inner: int) -> None:
        for _ in range(outer):
            await turn()
        with stream:
            for _ in range(inner):
                await turn()
                seen.append((weir.current_stream(device) is stream, weir.current_stream() is stream))
        await turn()
        seen.append((weir.current_stream(device) == default, weir.current_stream() == weir.current_stream("cpu")))

    one, two = weir.Stream(device), weir.Stream(device)
    # The second task begins its scope inside of the first one's and ends it later.
    in_turns(lambda turn: task(turn, one, 0, 3), lambda turn: task(turn, two, 1, 5))
    assert all(both == (True, True) for both in seen), seen
    assert len(seen) == 10
    assert weir.current_stream(device) == default


@pytest.mark.parametrize("make", [lambda: weir.ones(4), lambda: weir.arange(4) + 1])
def test_s7_work_of_a_task_goes_into_its_own_stream(queue_device: str, make: Callable[[], weir.Array]) -> None:
    """A gate holds the other task's stream: work that went there would not be over."""

    async def holds(turn: Turn) -> None:
        with held:
            await turn()
            await turn()
            await turn()

    async def works(turn: Turn) -> None:
        with free:
            made.append(make())
            await turn()
            made.append(make())
            await turn()
            made.append(make())
            made.append(free.record())

    held, free, made = weir.Stream(queue_device), weir.Stream(queue_device), []
    with Gate() as gate:
        gate.hold(held)
        in_turns(holds, works)
        made[-1].wait()
        assert all(x.ready for x in made[:-1])
        assert [x.tolist() for x in made[:-1]] == [made[0].tolist()] * 3
        assert not held.done
        with held:  # the control: what goes into the held stream is not over
            late = make()
        assert not late.ready
    assert late.tolist() == made[0].tolist()


def test_s7_a_task_begins_with_the_stream_that_was_current_where_it_was_made(device: weir.Device) -> None:
    one, two = weir.Stream(device), weir.Stream(device)
    seen = {}

    async def child(name: str) -> None:
        seen[name] = weir.current_stream(device)
        with two:
            await asyncio.sleep(0)
            seen[name + " inside"] = weir.current_stream(device)
        seen[name + " after"] = weir.current_stream(device)

    async def main() -> None:
        with one:
            inside = asyncio.create_task(child("inside"))
            both = asyncio.gather(child("a"), child("b"))
            await asyncio.sleep(0)
            assert weir.current_stream(device) is one
        outside = asyncio.create_task(child("outside"))
        await asyncio.gather(inside, both, outside)

    asyncio.run(main())
    default = weir.current_stream(device)
    for name in ("inside", "a", "b"):
        assert seen[name] is one  # although the scope of the task that made it has ended meanwhile
        assert seen[name + " after"] is one
    assert seen["outside"] == seen["outside after"] == default
    assert all(seen[name + " inside"] is two for name in ("inside", "a", "b", "outside"))


def test_s7_an_exception_and_a_cancellation_restore_the_task_s_stream(device: weir.Device) -> None:
    one, two, three = (weir.Stream(device) for _ in range(3))
    seen = []

    async def fails() -> None:
        with one:
            try:
                with two:
                    await asyncio.sleep(0)
                    raise KeyError
            except KeyError:
                seen.append(weir.current_stream(device) is one)
            await asyncio.sleep(0)
            seen.append(weir.current_stream(device) is one)
            raise ValueError

    async def is_cancelled() -> None:
        with three:
            try:
                await asyncio.sleep(3600)
            finally:
                seen.append(weir.current_stream(device) is three)

    async def main() -> None:
        tasks = [asyncio.create_task(fails()), asyncio.create_task(is_cancelled())]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [ValueError, asyncio.CancelledError]
        assert weir.current_stream(device) not in (one, two, three)

    asyncio.run(main())
    assert seen == [True] * 3
    assert weir.current_stream(device) not in (one, two, three)


def test_s7_a_stream_that_its_task_closes_stays_current_there_alone(device: weir.Device) -> None:
    """Switching between the tasks makes the closed stream current again, and nothing else is affected."""
    one, two = weir.Stream(device), weir.Stream(device)
    seen = []

    async def closes(turn: Turn) -> None:
        with one:
            one.close()
            await turn()
            seen.append(weir.current_stream(device) is one)
            with pytest.raises(weir.StateError, match="closed"):
                weir.ones(4)

    async def other(turn: Turn) -> None:
        with two:
            await turn()
            seen.append(weir.current_stream(device) is two)
            await turn()

    in_turns(closes, other)
    assert seen == [True, True]


def test_s7_a_thread_begins_with_the_default_and_to_thread_with_a_copy(device: weir.Device) -> None:
    stream = weir.Stream(device)
    default = weir.current_stream(device)

    def current() -> weir.Stream:
        return weir.current_stream(device)

    async def main() -> None:
        with ThreadPoolExecutor(1) as pool, stream:
            assert await asyncio.to_thread(current) is stream
            loop = asyncio.get_running_loop()
            # run_in_executor copies no context: the thread has its own.
            assert await loop.run_in_executor(pool, current) == default
            assert await loop.run_in_executor(pool, contextvars.copy_context().run, current) is stream
            assert await loop.run_in_executor(pool, current) == default

    asyncio.run(main())
    seen = []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
    assert seen == [default]


def test_s7_contexts_of_two_threads_do_not_mix(device: weir.Device) -> None:
    """One context runs on two threads in turn, each of which has a stream of its own besides."""
    shared = contextvars.copy_context()
    streams = [weir.Stream(device) for _ in range(3)]
    shared.run(streams[0].__enter__)
    failures = []

    def run(own: weir.Stream) -> None:
        try:
            with own:
                for _ in range(100):
                    assert weir.current_stream(device) is own
                    with lock:
                        assert shared.run(weir.current_stream, device) is streams[0]
        except BaseException as error:
            failures.append(error)

    lock = threading.Lock()
    threads = [threading.Thread(target=run, args=(own,)) for own in streams[1:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    shared.run(streams[0].__exit__, None, None, None)
    assert shared.run(weir.current_stream, device) == weir.current_stream(device)


def test_s7_an_exit_in_another_context_or_out_of_order_is_refused(device: weir.Device) -> None:
    one, two = weir.Stream(device), weir.Stream(device)
    with one:
        with pytest.raises(weir.StateError, match="innermost one of its context"):
            contextvars.Context().run(one.__exit__, None, None, None)
        assert weir.current_stream(device) is one

    def suspended() -> Iterator[None]:
        with one:
            yield

    generator = suspended()
    next(generator)
    assert weir.current_stream(device) is one  # a generator runs in the context of the code that asks it
    with two:
        with pytest.raises(weir.StateError, match="generators"):
            next(generator)
        assert weir.current_stream(device) is two
    one.__exit__(None, None, None)
    assert weir.current_stream(device) not in (one, two)


def test_s7_a_scope_that_was_entered_before_the_context_was_copied_ends_in_either(device: weir.Device) -> None:
    default, one = weir.current_stream(device), weir.Stream(device)
    one.__enter__()
    copied = contextvars.copy_context()
    copied.run(one.__exit__, None, None, None)
    assert copied.run(weir.current_stream, device) == default
    assert weir.current_stream(device) is one
    one.__exit__(None, None, None)
    assert weir.current_stream(device) == default


def test_s7_a_scope_that_ended_keeps_nothing(device: weir.Device) -> None:
    one = weir.Stream(device)
    before = sys.getrefcount(one)
    for _ in range(100):
        with one, one:  # the inner one ends first
            assert weir.current_stream(device) is one
    assert sys.getrefcount(one) == before


def test_o5_ordering_holds_for_its_task_alone(queue_device: str) -> None:
    """Under "manual" a read does not wait for a write that a gate holds; meanwhile, in the other task, it does."""
    writes, reads = weir.Stream(queue_device), weir.Stream(queue_device)
    x = weir.zeros(4, stream=writes)
    writes.synchronize()
    sums, waits = [], []

    def read() -> None:
        with reads:
            sums.append(x.sum())
        waits.append(str(weir.explain(sums[-1])).partition("waits for:")[2])

    async def manual(turn: Turn) -> None:
        with weir.ordering("manual"):
            await turn()
            await turn()
            read()

    async def automatic(turn: Turn) -> None:
        await turn()
        read()  # inside of the other task's scope
        await turn()

    with Gate() as gate:
        gate.hold(writes)
        with writes:
            x += 1
        in_turns(manual, automatic)
        assert '"add"' in waits[0]
        assert '"add"' not in waits[1]
    assert [one.item() for one in sums] == [4, 4]  # one stream, first in, first out


def test_memory_use_holds_for_its_task_alone() -> None:
    counted = [weir.memory.counting() for _ in range(2)]

    async def task(turn: Turn, resource: weir.memory.CountingResource, turns: int) -> list[weir.Array]:
        made = []
        for _ in range(turns):
            await turn()
        with weir.memory.use(resource):
            for _ in range(3):
                made += [weir.empty(100, "float64"), weir.ones(100, "float64")]
                await turn()
        made.append(weir.empty(100, "float64"))
        return made

    kept = []

    async def keep(turn: Turn, number: int) -> None:
        kept.append(await task(turn, counted[number], number))

    in_turns(lambda turn: keep(turn, 0), lambda turn: keep(turn, 1))
    assert [one.counts()["total"]["count"] for one in counted] == [6, 6]


def test_scopes_of_different_kinds_may_end_in_any_order(device: weir.Device) -> None:
    stream, counted = weir.Stream(device), weir.memory.counting()
    ordering, memory = weir.ordering("manual"), weir.memory.use(counted)
    for scope in (stream, ordering, memory):
        scope.__enter__()
    stream.__exit__(None, None, None)
    assert weir.current_stream(device) != stream
    weir.empty(4)
    assert counted.counts()["total"]["count"] == 1
    ordering.__exit__(None, None, None)
    weir.empty(4)
    assert counted.counts()["total"]["count"] == 2
    memory.__exit__(None, None, None)
    weir.empty(4)
    assert counted.counts()["total"]["count"] == 2


def test_a_scope_that_its_task_never_ended_goes_with_the_task(device: weir.Device) -> None:
    """The thread drops it with its next call into Weir, and the stream's destructor may call Weir itself."""
    default = weir.current_stream(device)
    seen = []

    class Noted(weir.Stream):
        def __del__(self) -> None:
            seen.append(weir.current_stream(device))

    async def leaves_open() -> None:
        for _ in range(2):
            Noted(device).__enter__()
        assert isinstance(weir.current_stream(device), Noted)

    async def main() -> None:
        await asyncio.create_task(leaves_open())
        gc.collect()
        assert weir.current_stream(device) == default

    asyncio.run(main())
    assert seen == [default, default]
