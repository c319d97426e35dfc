"""Streams of other packages (S5, C8), by what each package's streams look like, on a driver that is shared with it."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import types
import weakref
from typing import Any

import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from interrupting import interrupt
from weir import _packages
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


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, array: str, current: Any) -> Any:
    """A loaded package of this name, with a class of arrays and a current stream. Gives the class."""
    package: Any = types.ModuleType(name)
    made = type(array, (), {"__module__": name})
    setattr(package, array, made)
    package.cuda = types.SimpleNamespace(
        get_current_stream=current, current_stream=current, is_initialized=lambda: False, is_available=lambda: False
    )
    monkeypatch.setitem(sys.modules, name, package)
    return made


def test_stream_of_asks_the_package_at_each_call(
    monkeypatch: pytest.MonkeyPatch, driver: CudaDriver, cuda: weir.Device
) -> None:
    handles = [driver.create_stream(), driver.create_stream()]
    current = types.SimpleNamespace(stream=LikeCuPy(handles[0]))
    array = stand_in(monkeypatch, "cupy", "ndarray", lambda *_: current.stream)()
    array.device = types.SimpleNamespace(id=0)
    assert weir.stream_of(array).handle == handles[0]
    current.stream = LikeCuPy(handles[1])
    assert weir.stream_of(array).handle == handles[1]
    for made in handles:
        driver.destroy_stream(made)


@pytest.mark.parametrize(("name", "array"), [("torch", "Tensor"), ("cupy", "ndarray")])
def test_stream_of_knows_arrays_of_classes_that_programs_derive(
    name: str, array: str, monkeypatch: pytest.MonkeyPatch, handle: int, cuda: weir.Device
) -> None:
    base = stand_in(monkeypatch, name, array, lambda *_: LikeCuPy(handle) if name == "cupy" else LikeTorch(handle))
    place = types.SimpleNamespace(id=0, index=0)
    derived = type("Masked", (base,), {"__module__": "elsewhere.arrays", "device": place, "is_cuda": True})
    assert weir.stream_of(derived()).handle == handle
    unrelated = type("Tensor", (), {"__module__": "elsewhere", "device": place, "is_cuda": True})
    with pytest.raises(weir.ArgumentTypeError, match=r"a elsewhere\.Tensor has no stream"):
        weir.stream_of(unrelated())


def test_stream_of_does_without_packages_that_are_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    with pytest.raises(weir.ArgumentTypeError, match="has no stream"):
        weir.stream_of([1])


def test_stream_of_knows_classes_that_are_derived_from_torchs() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    derived = type("Masked", (torch.Tensor,), {"__module__": "elsewhere"})
    on_cpu = torch.ones(2).as_subclass(derived)
    assert _packages.package_name_of(on_cpu) == "torch"
    with pytest.raises(weir.ArgumentTypeError, match="torch on the CPU"):
        weir.stream_of(on_cpu)
    if torch.cuda.is_available() and "WEIR_CUDA_DRIVER" not in os.environ:
        on_cuda = torch.ones(2, device="cuda").as_subclass(derived)
        assert weir.stream_of(on_cuda).handle == torch.cuda.current_stream().cuda_stream


def test_stream_of_arrays_and_streams_of_weir_is_the_current_one() -> None:
    s = weir.Stream()
    with s:
        assert weir.stream_of(weir.zeros(2)) is s
        assert weir.stream_of(s) is s


def test_stream_of_takes_the_stream_that_an_interface_names(handle: int) -> None:
    named = types.SimpleNamespace(__cuda_array_interface__={"version": 3, "stream": handle})
    assert weir.stream_of(named).handle == handle
    unnamed = types.SimpleNamespace(__cuda_array_interface__={"version": 2})
    with pytest.raises(weir.ArgumentTypeError, match="names no stream"):
        weir.stream_of(unnamed)


@pytest.mark.parametrize("read", ["handle", "ptr", "cuda_stream", "__cuda_stream__"])
def test_s5_a_stream_is_shared_from_when_its_handle_is_read(read: str, cuda: weir.Device) -> None:
    s = weir.Stream(cuda)
    for _ in (s.shared, s.name, s.unique_id, s.done, repr(s), s.record(), weir.zeros(1, stream=s)):
        assert not s.shared
    given = getattr(s, read)
    assert given() if callable(given) else given
    assert s.shared
    s.synchronize()
    assert s.shared
    s.close()
    assert s.shared


def test_s5_adopted_streams_are_shared_and_streams_without_handles_are_not(handle: int, cuda: weir.Device) -> None:
    assert weir.adopt(handle, device=cuda).shared
    for name in ("cpu", "cpu:inline", "sim:0"):
        s = weir.Stream(name)
        assert s.handle == 0
        assert not s.shared


def test_o9_an_operation_in_a_shared_stream_takes_two_calls_of_the_driver_more(
    driver: CudaDriver, cuda: weir.Device
) -> None:
    if not driver.is_fake:
        pytest.skip("only the fake driver counts its calls")
    s = weir.Stream(cuda)
    x = weir.zeros(16, "float32", stream=s)
    names = ("cuMemsetD32Async", "cuEventRecord", "cuStreamIsCapturing")

    def calls_of_fills() -> tuple[float, ...]:
        s.synchronize()
        before = [driver.calls(name) for name in names]
        for _ in range(64):
            weir.fill(x, 1, stream=s)
        return tuple((driver.calls(name) - old) / 64 for name, old in zip(names, before, strict=True))

    fills, records, asked = calls_of_fills()
    assert fills == 1
    assert records < 0.5
    assert asked == 0
    assert s.handle
    fills, records, asked = calls_of_fills()
    assert fills == 1
    assert 1 <= records < 1.25  # now and then the watcher asks for one as well
    assert 1 <= asked < 1.25
