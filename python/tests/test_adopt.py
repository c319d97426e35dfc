"""Streams of other packages (S5, C8), by what each package's streams look like, on a driver that is shared with it."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
import weakref
from typing import Any

import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from interrupting import interrupt
from weir.testing import Gate


@pytest.fixture(scope="module")
def driver() -> CudaDriver:
    try:
        return CudaDriver()
    except OSError as reason:
        pytest.skip(f"no CUDA driver: {reason}")


@pytest.fixture
def handle(driver: CudaDriver, cuda: weir.Device) -> Any:
    made = driver.create_stream()
    yield made
    driver.destroy_stream(made)


class LikeCudaCore:
    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._handle)


class LikeCuPy:
    def __init__(self, handle: int) -> None:
        self.ptr = handle
        self.device_id = 0


class LikeNumba:
    def __init__(self, handle: int) -> None:
        self.handle = ctypes.c_void_p(handle)


class LikeTorch:
    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle
        self.device_index = 0


@pytest.mark.parametrize("kind", [LikeCudaCore, LikeCuPy, LikeNumba, LikeTorch, int])
def test_s5_streams_of_other_packages_are_adopted(kind: Any, handle: int, driver: CudaDriver) -> None:
    stream = weir.adopt(kind(handle))
    assert stream.device == weir.Device("cuda:0")
    assert stream.handle == handle
    assert stream == weir.adopt(handle)
    assert "adopted" in repr(stream)
    stream.synchronize()
    stream.close()
    driver.synchronize(handle)  # C8: it is not ended


def test_s5_the_owner_is_kept_as_long_as_the_stream_works(handle: int) -> None:
    theirs = LikeCudaCore(handle)
    seen = weakref.ref(theirs)
    stream = weir.adopt(theirs)
    del theirs
    gc.collect()
    assert seen() is not None
    stream.synchronize()
    del stream
    gc.collect()
    eventually(lambda: seen() is None)


def test_an_owner_can_be_named(handle: int) -> None:
    class Owner:
        pass

    owner = Owner()
    seen = weakref.ref(owner)
    stream = weir.adopt(handle, owner=owner)
    del owner
    gc.collect()
    assert seen() is not None
    del stream
    eventually(lambda: seen() is None)


def test_work_is_ordered_with_an_adopted_stream(handle: int, driver: CudaDriver) -> None:
    held, stream = weir.Stream("cuda:0"), weir.adopt(handle)
    with Gate() as gate:
        gate.hold(held)
        other = weir.Stream("cuda:0")
        other.wait(held)
        driver.synchronize(handle)  # the control: nothing there yet
        event = held.record()
        assert not event.done
    event.wait()
    stream.wait(event)
    stream.synchronize()


def test_an_events_handle_is_the_drivers(driver: CudaDriver, handle: int, cuda: weir.Device) -> None:
    """Others wait for it, and ask it, as for one of their own."""
    if not driver.is_fake:
        pytest.skip("only the fake driver has gates in its own streams")
    s = weir.Stream(cuda)
    x = weir.zeros(4, device=cuda, stream=s)
    s.synchronize()
    for record in (lambda: weir.fill(x, 3, stream=s), s.record):
        held = driver.hold(s.handle)
        event = record()
        native = event.handle
        assert native != 0
        assert event.handle == native
        driver.wait_event(handle, native)
        assert not driver.is_over(native)
        assert not driver.is_idle(handle)
        driver.open(held)
        driver.synchronize(handle)
        assert driver.is_over(native)
        event.wait()
    after = s.record()
    after.wait()
    held = driver.hold(s.handle)
    weir.fill(x, 4, stream=s)
    eventually(lambda: driver.is_over(after.handle))  # whatever the stream does by now
    assert not driver.is_idle(s.handle)
    driver.open(held)
    s.synchronize()


def test_an_events_handle_stays_its_own(driver: CudaDriver, cuda: weir.Device) -> None:
    """As long as the event lives, and is not recorded again, no other moment gets the driver's event."""
    s = weir.Stream(cuda)
    x = weir.zeros(4, device=cuda, stream=s)
    events = [weir.fill(x, value, stream=s) for value in range(3)]
    handles = [event.handle for event in events]
    for _ in range(10):
        again = weir.fill(x, 3, stream=s)
        assert again.handle not in handles
        again.wait()
    assert [event.handle for event in events] == handles
    events[0].record(s)
    assert events[0].handle not in handles[1:]
    events[1].close()
    with pytest.raises(weir.StateError, match="closed"):
        _ = events[1].handle
    assert weir.Event(cuda).handle == 0
    s.synchronize()


def test_an_events_handle_waits_for_the_other_device(driver: CudaDriver, cuda: weir.Device) -> None:
    """O9: until the driver has the work, there is no event of it."""
    s, t = weir.Stream(), weir.Stream(cuda)
    with Gate() as gate:
        gate.hold(s)
        t.wait(s)
        event = t.record()
        interrupt(lambda: event.handle)
    assert event.handle != 0
    t.synchronize()
    eventually(lambda: driver.is_over(event.handle))  # the driver's event comes behind what Weir itself asks about


def test_the_default_streams_are_adopted_by_their_numbers(cuda: weir.Device) -> None:
    assert weir.adopt(0) == weir.adopt(1)
    assert weir.adopt(2) != weir.adopt(1)
    assert weir.adopt(2, device="cuda:0").device == cuda


def test_a_call_takes_streams_of_others(handle: int) -> None:
    event = weir.Event()
    event.record(LikeCuPy(handle))
    assert event.device == weir.Device("cuda:0")
    event.wait(LikeTorch(handle))
    weir.Stream("cuda:0").wait(LikeCudaCore(handle))
    event.wait()


def test_a_handle_that_is_given_out_is_the_drivers(driver: CudaDriver, cuda: weir.Device) -> None:
    stream = weir.Stream(cuda)
    assert stream.__cuda_stream__() == (0, stream.handle)
    assert stream.handle not in (0, 1, 2)
    driver.synchronize(stream.handle)
    assert weir.adopt(stream.handle) == stream


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (types.SimpleNamespace(__cuda_stream__=lambda: 7), TypeError),
        (types.SimpleNamespace(__cuda_stream__=lambda: (0, "x")), TypeError),
        (types.SimpleNamespace(ptr="x"), TypeError),
        (types.SimpleNamespace(ptr=-3), ValueError),
    ],
)
def test_what_is_no_stream_is_refused(bad: object, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        weir.adopt(bad)
    assert isinstance(raised.value, (weir.ArgumentError, weir.ArgumentTypeError))


def test_stream_of_asks_the_package_at_each_call(
    monkeypatch: pytest.MonkeyPatch, driver: CudaDriver, cuda: weir.Device
) -> None:
    handles = [driver.create_stream(), driver.create_stream()]
    current = types.SimpleNamespace(stream=LikeCuPy(handles[0]))
    package = types.ModuleType("cupy")
    package.cuda = types.SimpleNamespace(get_current_stream=lambda: current.stream)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", package)
    array_type = type("ndarray", (), {"__module__": "cupy", "device": types.SimpleNamespace(id=0)})
    array = array_type()
    assert weir.stream_of(array).handle == handles[0]
    current.stream = LikeCuPy(handles[1])
    assert weir.stream_of(array).handle == handles[1]
    for made in handles:
        driver.destroy_stream(made)


def test_stream_of_takes_the_stream_that_an_interface_names(handle: int) -> None:
    named = types.SimpleNamespace(__cuda_array_interface__={"version": 3, "stream": handle})
    assert weir.stream_of(named).handle == handle
    unnamed = types.SimpleNamespace(__cuda_array_interface__={"version": 2})
    with pytest.raises(weir.ArgumentTypeError, match="names no stream"):
        weir.stream_of(unnamed)
