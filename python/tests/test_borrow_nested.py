"""The current streams inside borrows that nest, meet on several threads, or hold across an await (X6, S7)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import weir
from cuda_driver import CudaDriver
from weir import _borrow
from weir.testing import Gate


class Package(threading.local):
    """What stands for torch or CuPy: a current stream for each thread."""

    current = 0  # the handle; 0 is the package's own


class TorchStream(NamedTuple):
    handle: int
    device_index: int


class Switch:
    """Makes a stream current in CuPy, as `Stream.from_external` does."""

    def __init__(self, of: Package, handle: int) -> None:
        self.of, self.handle = of, handle

    def __enter__(self) -> Switch:
        self.before, self.of.current = self.of.current, self.handle
        return self

    def __exit__(self, *_: object) -> None:
        self.of.current = self.before


class Packages:
    def __init__(self) -> None:
        self.torch, self.cupy = Package(), Package()
        self.switch: type[Switch] = Switch  # CuPy's

    def current(self) -> tuple[int, int]:
        return self.torch.current, self.cupy.current


OWN = (0, 0)  # torch and CuPy are on streams of their own


@pytest.fixture
def packages(driver: CudaDriver, cuda: weir.Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    made = Packages()
    torch: Any = types.SimpleNamespace(
        cuda=types.SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: False,
            ExternalStream=lambda handle, device: TorchStream(handle, device),
            current_stream=lambda device=None: TorchStream(made.torch.current, 0),
            set_stream=lambda one: setattr(made.torch, "current", one.handle),
        )
    )
    stream = types.SimpleNamespace(from_external=lambda one: made.switch(made.cupy, one.handle))
    cupy: Any = types.SimpleNamespace(
        cuda=types.SimpleNamespace(Stream=stream, get_current_stream=lambda: made.cupy.current)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(_borrow, "_torch_has_cuda", False)
    _borrow._stream_of_torch.cache_clear()
    yield made
    _borrow._stream_of_torch.cache_clear()


def is_current(packages: Packages, s: weir.Stream) -> bool:
    """In all three."""
    return weir.current_stream(s.device) == s and packages.current() == (s.handle, s.handle)


def array(device: weir.Device | str = "cuda:0") -> weir.Array:
    x = weir.zeros(100, "float32", device=device)
    weir.synchronize(device)
    return x


def run_all(*work: Callable[[], None]) -> None:
    """Each on a thread of its own; raises what the first of them raised."""
    failures: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failures:
        raise error


# Nested borrows


@pytest.mark.parametrize("same_stream", [True, False])
@pytest.mark.parametrize("same_array", [True, False])
def test_x6_the_inner_exit_restores_the_outer_streams(packages: Packages, same_stream: bool, same_array: bool) -> None:
    outer, x = weir.Stream("cuda:0"), array()
    inner = outer if same_stream else weir.Stream("cuda:0")
    y = x if same_array else array()
    before = weir.current_stream("cuda:0")
    with weir.borrow(x, write=[x], stream=outer):
        assert is_current(packages, outer)
        with weir.borrow(y, write=[y], stream=inner):
            assert is_current(packages, inner)
        assert is_current(packages, outer)
        with pytest.raises(KeyError), weir.borrow(y, stream=inner):
            raise KeyError("in the block")
        assert is_current(packages, outer)
    assert packages.current() == OWN
    assert weir.current_stream("cuda:0") == before


@pytest.mark.parametrize("of_view", [True, False])
def test_x6_later_work_of_the_outer_borrow_comes_after_the_inner_ones(device: weir.Device, of_view: bool) -> None:
    """Also what enters the outer stream without Weir's knowing what it uses, as launches of other packages do."""
    outer, inner, x = weir.Stream(device), weir.Stream(device), array(device)
    with Gate() as gate:
        with weir.borrow(x, write=[x], stream=outer) as (view,):
            lent = view if of_view else x
            with weir.borrow(lent, write=[lent], stream=inner):
                gate.hold(inner)  # stands for the work of another package
            assert not outer.done
        gate.open()
    outer.synchronize()
    assert inner.done


def test_x6_control_the_outer_borrow_does_not_wait_for_other_arrays(device: weir.Device) -> None:
    outer, inner, x, y = weir.Stream(device), weir.Stream(device), array(device), array(device)
    with Gate() as gate:
        with weir.borrow(x, write=[x], stream=outer):
            with weir.borrow(y, write=[y], stream=inner):
                gate.hold(inner)
            outer.synchronize()
            assert not inner.done
        gate.open()


def test_x6_control_borrows_that_only_read_do_not_wait_for_each_other(device: weir.Device) -> None:
    outer, inner, x = weir.Stream(device), weir.Stream(device), array(device)
    with Gate() as gate:
        with weir.borrow(x, stream=outer):
            with weir.borrow(x, stream=inner):
                gate.hold(inner)
            outer.synchronize()
            assert not inner.done
        gate.open()


def test_x6_work_of_weir_on_the_outer_view_comes_after_the_inner_ones(device: weir.Device) -> None:
    outer, inner, other, x = weir.Stream(device), weir.Stream(device), weir.Stream(device), array(device)
    with Gate() as gate:
        with weir.borrow(x, write=[x], stream=outer) as (view,):
            with weir.borrow(x, write=[x], stream=inner) as (within,):
                gate.hold(inner)
                weir.fill(within, 3, stream=inner)
            weir.fill(view, 5, stream=other)
            assert not other.done
        gate.open()
    assert x.tolist() == [5] * 100


def test_x6_the_inner_borrow_comes_after_what_the_outer_stream_has(device: weir.Device) -> None:
    outer, inner, x = weir.Stream(device), weir.Stream(device), array(device)
    with Gate() as gate:
        with weir.borrow(x, write=[x], stream=outer):
            gate.hold(outer)
            with weir.borrow(x, write=[x], stream=inner):
                assert not inner.done
        gate.open()
    inner.synchronize()


def test_a13_the_current_device_of_torch_and_its_streams_are_current_again(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`set_stream` makes the stream's device the current one as well, as it does in torch."""
    device, streams = 1, {0: TorchStream(5, 0), 1: TorchStream(7, 1)}

    def set_stream(one: TorchStream) -> None:
        nonlocal device
        device, streams[one.device_index] = one.device_index, one

    cuda = sys.modules["torch"].cuda
    monkeypatch.setattr(cuda, "set_stream", set_stream)
    monkeypatch.setattr(cuda, "current_stream", lambda of=None: streams[device if of is None else of])
    s, x, before = weir.Stream("cuda:0"), array(), dict(streams)
    with weir.borrow(x, stream=s):
        assert device == 0
        assert streams[0].handle == s.handle
    assert device == 1
    assert streams == before


# Several threads


def test_x6_each_thread_is_inside_of_its_own_borrow(packages: Packages) -> None:
    together = threading.Barrier(3)

    def borrows() -> None:
        s, x = weir.Stream("cuda:0"), array()
        together.wait(60)
        for _ in range(20):
            with weir.borrow(x, write=[x], stream=s):
                together.wait(60)  # all are inside
                assert is_current(packages, s)
                with weir.borrow(x, stream=weir.current_stream("cuda:0")):
                    together.wait(60)
                    assert is_current(packages, s)
                together.wait(60)
                assert is_current(packages, s)
            assert packages.current() == OWN
            together.wait(60)  # none is

    run_all(borrows, borrows, borrows)
    assert packages.current() == OWN


# Exits in another order


def test_x6_a_borrow_is_left_after_those_that_were_entered_inside_of_it(packages: Packages) -> None:
    one, two, x = weir.Stream("cuda:0"), weir.Stream("cuda:0"), array()
    a, b = weir.borrow(x, write=[x], stream=one), weir.borrow(x, write=[x], stream=two)
    (of_a,) = a.__enter__()
    (of_b,) = b.__enter__()
    with pytest.raises(weir.StateError, match="leave first the borrow that was entered last"):
        a.__exit__(None, None, None)
    assert is_current(packages, two)
    weir.fill(of_a, 3)
    weir.fill(of_b, 4)
    b.__exit__(None, None, None)
    assert is_current(packages, one)
    weir.fill(of_a, 5)
    a.__exit__(None, None, None)
    assert packages.current() == OWN
    assert weir.current_stream("cuda:0") not in (one, two)


def test_x6_the_order_of_exits_holds_on_all_devices(any_device: weir.Device) -> None:
    one, two, x = weir.Stream(any_device), weir.Stream(any_device), array(any_device)
    before = weir.current_stream(any_device)
    a, b = weir.borrow(x, stream=one), weir.borrow(x, stream=two)
    a.__enter__()
    b.__enter__()
    with pytest.raises(weir.StateError, match=r"leave first (the borrow that|what) was entered last"):
        a.__exit__(None, None, None)
    assert weir.current_stream(any_device) == two
    b.__exit__(None, None, None)
    a.__exit__(None, None, None)
    assert weir.current_stream(any_device) == before
    with pytest.raises(weir.StateError, match="not entered"):
        a.__exit__(None, None, None)


def test_x6_a_borrow_is_left_on_its_own_thread(packages: Packages) -> None:
    s, x = weir.Stream("cuda:0"), array()
    lent = weir.borrow(x, write=[x], stream=s)
    (view,) = lent.__enter__()
    with pytest.raises(weir.StateError, match="leave it on the thread that entered it"):
        run_all(lambda: lent.__exit__(None, None, None))
    assert is_current(packages, s)
    weir.fill(view, 3)
    lent.__exit__(None, None, None)
    assert packages.current() == OWN
    assert x.tolist() == [3] * 100


def test_x6_a_borrow_is_left_after_the_streams_that_became_current_inside_of_it(device: weir.Device) -> None:
    lent, later, x = weir.Stream(device), weir.Stream(device), array(device)
    before = weir.current_stream(device)
    scope = weir.borrow(x, write=[x], stream=lent)
    (view,) = scope.__enter__()
    later.__enter__()
    for _ in range(2):
        with pytest.raises(weir.StateError, match=r"`with stream:`.*leave first what was entered last"):
            scope.__exit__(None, None, None)
    assert weir.current_stream(device) == later
    weir.fill(view, 3)
    later.__exit__(None, None, None)
    scope.__exit__(None, None, None)
    assert weir.current_stream(device) == before


def expect_left_in_its_own_context(device: weir.Device, make: Callable[[], contextvars.Context]) -> None:
    s, x = weir.Stream(device), array(device)
    before = weir.current_stream(device)
    lent = weir.borrow(x, stream=s)
    lent.__enter__()
    for _ in range(2):
        with pytest.raises(weir.StateError, match=r"asyncio task.* that entered it"):
            make().run(lent.__exit__, None, None, None)
    assert weir.current_stream(device) == s
    lent.__exit__(None, None, None)
    assert weir.current_stream(device) == before


def test_x6_a_borrow_is_left_in_its_own_context(device: weir.Device) -> None:
    expect_left_in_its_own_context(device, contextvars.Context)


def test_x6_a_borrow_of_cuda_is_left_in_no_copy_of_its_context(packages: Packages) -> None:
    expect_left_in_its_own_context(weir.Device("cuda:0"), contextvars.copy_context)
    assert packages.current() == OWN


def test_x6_a_borrow_that_is_dropped_inside_keeps_nothing_from_being_left(device: weir.Device) -> None:
    x, outer = array(device), weir.Stream(device)

    def drops() -> None:
        with weir.borrow(x, stream=outer):
            weir.borrow(x, stream=outer).__enter__()
            gc.collect()
        with weir.borrow(x, stream=outer):
            pass

    # In a context of its own, which the stream of the borrow that was dropped stays current in.
    contextvars.copy_context().run(drops)
    with weir.borrow(x, stream=outer):
        pass


@pytest.mark.parametrize("on_thread", [True, False])
def test_x6_a_program_may_end_inside_of_borrows(on_thread: bool) -> None:
    program = f"""
import threading, weir
x = weir.zeros(3)
kept = [weir.borrow(x), weir.borrow(x)]
def enters():
    for one in kept:
        one.__enter__()
    weir.borrow(x).__enter__()
if {on_thread}:
    thread = threading.Thread(target=enters)
    thread.start()
    thread.join()
else:
    enters()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


# Tasks


def test_s7_a_task_that_awaits_inside_has_its_streams_afterwards(packages: Packages) -> None:
    s, x, ran = weir.Stream("cuda:0"), array(), []

    async def other() -> None:
        ran.append(weir.current_stream("cuda:0") != s)  # its own context is Weir's

    async def main() -> None:
        task = asyncio.create_task(other())
        with weir.borrow(x, write=[x], stream=s) as (view,):
            await task
            assert is_current(packages, s)
            weir.fill(view, 3)
            await s.record()
            assert is_current(packages, s)
            with weir.borrow(x, stream=s):
                await asyncio.sleep(0)
                assert is_current(packages, s)
        assert packages.current() == OWN

    asyncio.run(main())
    assert ran == [True]
    assert packages.current() == OWN


@pytest.mark.parametrize("inherits", [True, False])
def test_s7_a_borrow_is_refused_while_another_task_awaits_inside_of_one(packages: Packages, inherits: bool) -> None:
    """Also if the other task has made this one, whose context is then a copy of its own."""
    one, two, x = weir.Stream("cuda:0"), weir.Stream("cuda:0"), array()
    refused = []

    async def second() -> None:
        before = weir.current_stream("cuda:0")
        lent = weir.borrow(x, write=[x], stream=two)
        for _ in range(2):  # to ask is not to change
            with pytest.raises(weir.StateError, match=r"inside a borrow\(\), at an await.*asyncio\.to_thread") as why:
                lent.__enter__()
            refused.append(str(why.value))
        assert weir.current_stream("cuda:0") == before
        await asyncio.to_thread(on_its_own_thread)
        await left.wait()
        with lent:  # nothing has changed for the borrow, either
            assert is_current(packages, two)

    def on_its_own_thread() -> None:
        with weir.borrow(x, stream=two):
            assert is_current(packages, two)
        assert packages.current() == OWN

    async def main() -> None:
        task = None if inherits else asyncio.create_task(second())
        with weir.borrow(x, write=[x], stream=one) as (view,):
            task = task or asyncio.create_task(second())
            while not refused and not task.done():
                await asyncio.sleep(0)
            assert is_current(packages, one)
            with weir.borrow(view, stream=one):
                assert is_current(packages, one)
            weir.fill(view, 3)
        assert packages.current() == OWN
        left.set()
        await task

    left = asyncio.Event()
    asyncio.run(main())
    assert len(refused) == 2
    assert packages.current() == OWN
    assert x.tolist() == [3] * 100


def test_s7_tasks_borrow_in_turn(any_device: weir.Device) -> None:
    x, s = array(any_device), weir.Stream(any_device)

    async def borrows(add: int) -> None:
        for _ in range(3):
            with weir.borrow(x, write=[x], stream=s) as (view,):
                view += add
            await s.record()

    async def main() -> None:
        await asyncio.gather(borrows(1), borrows(10))

    asyncio.run(main())
    assert x.tolist() == [33] * 100


def test_s7_where_no_package_has_a_current_stream_tasks_borrow_at_once() -> None:
    """Weir's own current stream follows the task."""
    host = weir.Device("cpu")
    x, y, one, two = array(host), array(host), weir.Stream(host), weir.Stream(host)

    async def borrows(z: weir.Array, s: weir.Stream) -> None:
        with weir.borrow(z, write=[z], stream=s) as (view,):
            arrived.append(s)
            while len(arrived) < 2:
                await asyncio.sleep(0)
            assert weir.current_stream(host) == s
            view += 1

    async def main() -> None:
        await asyncio.gather(borrows(x, one), borrows(y, two))

    arrived: list[weir.Stream] = []
    asyncio.run(main())
    assert (x + y).tolist() == [2] * 100


def test_s7_a_cancelled_task_leaves_its_borrow(packages: Packages) -> None:
    s, x = weir.Stream("cuda:0"), array()

    async def waits() -> None:
        with weir.borrow(x, stream=s):
            inside.set()
            await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(waits())
        await inside.wait()
        assert packages.current() == (s.handle, s.handle)  # what other tasks see
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert packages.current() == OWN
        with weir.borrow(x, stream=s):
            assert is_current(packages, s)

    inside = asyncio.Event()
    asyncio.run(main())
    assert packages.current() == OWN


# Packages that fail


class FailsToEnter(Switch):
    def __enter__(self) -> Switch:
        raise KeyError("at the entry")


class FailsToExit(Switch):
    def __exit__(self, *_: object) -> None:
        super().__exit__()
        raise KeyError("at the exit")


@pytest.mark.parametrize("fails", [FailsToEnter, FailsToExit])
def test_x6_what_a_package_raises_is_raised_and_nothing_stays_switched(packages: Packages, fails: type[Switch]) -> None:
    outer, inner, x = weir.Stream("cuda:0"), weir.Stream("cuda:0"), array()
    before = weir.current_stream("cuda:0")
    packages.switch = fails
    with pytest.raises(KeyError, match="at the e"), weir.borrow(x, write=[x], stream=inner):
        assert fails is FailsToExit
    assert packages.current() == OWN
    assert weir.current_stream("cuda:0") == before
    packages.switch = Switch
    with weir.borrow(x, write=[x], stream=outer):
        packages.switch = fails
        with pytest.raises(KeyError, match="at the e"), weir.borrow(x, write=[x], stream=inner):
            pass
        assert is_current(packages, outer)
    assert packages.current() == OWN
    assert weir.current_stream("cuda:0") == before
