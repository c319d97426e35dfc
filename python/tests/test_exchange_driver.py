"""The exchange on CUDA devices by what reaches the driver (X2, X3, X6, X7, L5): on the fake one, without a GPU."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually


@pytest.fixture
def handle(driver: CudaDriver, cuda: weir.Device) -> int:
    """A stream of another library. It stays: memory that a test handed to it may name it until that is released."""
    return driver.create_stream()


def written_late(x: weir.Array, driver: CudaDriver) -> tuple[weir.Stream, int]:
    """A stream in which a write to `x` is pending, and what opens it."""
    s = weir.Stream(x.device)
    held = driver.hold(s.handle)
    weir.fill(x, 1, stream=s)
    return s, held


@contextlib.contextmanager
def pending_write(x: weir.Array, driver: CudaDriver) -> Iterator[weir.Stream]:
    """The same stream, for a block; the write runs at its end."""
    s, held = written_late(x, driver)
    try:
        yield s
    finally:
        driver.open(held)
        s.synchronize()


def fill_that_waits(x: weir.Array, driver: CudaDriver, behind: int) -> int:
    """How many waits a write to `x` gives to the driver, while what enters the stream `behind` is held.

    With a package on that stream they are two: the write waits for the package, and the package's stream for the write.
    """
    held = driver.hold(behind)
    s = weir.Stream(x.device)
    before = driver.calls("cuStreamWaitEvent")
    weir.fill(x, 2, stream=s)
    waits = driver.calls("cuStreamWaitEvent") - before
    assert not (waits and s.done)
    driver.open(held)
    s.synchronize()
    return waits


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_x2_the_named_stream_waits_and_the_host_does_not(
    driver: CudaDriver, handle: int, x: weir.Array, mode: Literal["auto", "manual"]
) -> None:
    s, held = written_late(x, driver)
    with weir.ordering(mode):  # the argument asks for the order, also where the program orders all else (O5)
        x.__dlpack__(stream=handle, max_version=(1, 0))
    assert driver.pending(handle) > 0
    driver.open(held)
    s.synchronize()
    eventually(lambda: driver.pending(handle) == 0)


def test_x2_minus_1_makes_no_call_of_the_driver(driver: CudaDriver, handle: int, x: weir.Array) -> None:
    x.__dlpack__(stream=-1)  # once, for what is made at the first use
    before = driver.own_calls()
    capsule = x.__dlpack__(stream=-1)
    assert driver.own_calls() == before
    assert driver.pending(handle) == 0
    del capsule


def test_b2_minus_1_does_not_end_a_capture(driver: CudaDriver, handle: int, x: weir.Array) -> None:
    x.__dlpack__(stream=-1)
    driver.begin_capture(handle)
    try:
        capsule = x.__dlpack__(stream=-1, max_version=(1, 0))
        y = weir.from_dlpack(capsule)
    finally:
        survived = driver.end_capture(handle)
    assert survived
    assert y.shape == x.shape


def test_b2_control_a_call_that_captures_refuse_ends_it(driver: CudaDriver, handle: int) -> None:
    driver.begin_capture(handle)
    with contextlib.suppress(AssertionError):
        driver.is_over(driver.record_event(handle))  # an event of the capture is not to be asked for
    assert not driver.end_capture(handle)


@pytest.mark.parametrize("version", [(1, 0), None])
def test_x1_a_capsule_of_weirs_own_is_the_same_array(
    driver: CudaDriver, x: weir.Array, version: tuple[int, int] | None
) -> None:
    y = weir.from_dlpack(x.__dlpack__(stream=-1, max_version=version))
    s, held = written_late(x, driver)
    assert not y.ready, "it has the history of the array that it came from"
    driver.open(held)
    s.synchronize()
    assert y.ready


NO_STREAM = "is no stream: pass a weir.Stream"


@pytest.mark.parametrize(
    ("stream", "error", "says"),
    [
        (0, weir.ArgumentError, "pass the handle"),
        (False, weir.ArgumentTypeError, NO_STREAM),
        (-2, weir.ArgumentError, "pass the handle"),
        (-17, weir.ArgumentError, "pass the handle"),
        (-(1 << 70), weir.ArgumentError, "pass the handle"),
        (1 << 64, weir.ArgumentError, "pass the driver's handle"),
        (1 << 63, weir.ArgumentError, "no stream of cuda:0"),
        (True, weir.ArgumentTypeError, NO_STREAM),
        (1.0, weir.ArgumentTypeError, NO_STREAM),
        (-1.0, weir.ArgumentTypeError, NO_STREAM),
        (float("nan"), weir.ArgumentTypeError, NO_STREAM),
        ("x", weir.ArgumentTypeError, NO_STREAM),
        ("1", weir.ArgumentTypeError, NO_STREAM),
        ((0, 1), weir.ArgumentTypeError, NO_STREAM),
        (object(), weir.ArgumentTypeError, NO_STREAM),
        (types.SimpleNamespace(cuda_stream="x"), weir.ArgumentTypeError, "no integer"),
        (types.SimpleNamespace(cuda_stream=-3), weir.ArgumentError, "pass the driver's handle"),
    ],
)
def test_x2_what_is_no_stream_is_refused(
    driver: CudaDriver, stream: object, error: type[Exception], says: str, x: weir.Array
) -> None:
    expect_refused(driver, x, stream, error, says)


def expect_refused(driver: CudaDriver, x: weir.Array, stream: object, error: type[Exception], says: str) -> None:
    """It has no effect: no stream waits, neither now nor when Weir writes later."""
    with pending_write(x, driver) as s:
        before = driver.calls("cuStreamWaitEvent")
        with pytest.raises(error, match=says):
            x.__dlpack__(stream=stream, max_version=(1, 0))
        weir.fill(x, 2, stream=s)
        assert driver.calls("cuStreamWaitEvent") == before


@pytest.mark.parametrize(
    "kind",
    [int, lambda handle: types.SimpleNamespace(cuda_stream=handle), lambda handle: types.SimpleNamespace(ptr=handle)],
    ids=["integer", "torch", "cupy"],
)
def test_x2_the_handle_of_a_destroyed_stream_is_refused(
    driver: CudaDriver, kind: Callable[[int], object], x: weir.Array
) -> None:
    with pending_write(x, driver):  # before the stream is destroyed: a later stream may get its handle
        destroyed = driver.create_stream()
        driver.destroy_stream(destroyed)
        before = driver.calls("cuStreamWaitEvent")
        with pytest.raises(weir.ArgumentError, match=r"no stream of cuda:0 with the handle .* destroyed"):
            x.__dlpack__(stream=kind(destroyed), max_version=(1, 0))
        assert driver.calls("cuStreamWaitEvent") == before
    for place in ("cpu", "sim:0"):
        with pytest.raises(weir.ArgumentError, match="pass None or -1"):
            weir.ones(2, device=place).__dlpack__(stream=kind(destroyed))


def test_x2_streams_that_are_closed_or_of_another_device_are_refused(driver: CudaDriver, x: weir.Array) -> None:
    closed = weir.Stream(x.device)
    closed.close()
    expect_refused(driver, x, closed, weir.StateError, "is closed")
    for place in ("cpu", "sim:0"):
        expect_refused(driver, x, weir.Stream(place), weir.ArgumentError, "cannot reach")


@pytest.mark.parametrize("recorded", [False, True])
def test_e8_an_event_is_no_stream(driver: CudaDriver, x: weir.Array, recorded: bool) -> None:
    """It has a handle, as streams have: that of an event that was never recorded is 0, the legacy default stream's."""
    event = weir.fill(x, 0, stream=weir.Stream(x.device)) if recorded else weir.Event(x.device)
    expect_refused(driver, x, event, weir.ArgumentTypeError, "no stream")
    with pytest.raises(weir.ArgumentTypeError, match="no stream"):
        weir.adopt(event)


def test_x2_a_number_of_numpys_is_the_same_as_a_number(driver: CudaDriver, handle: int, x: weir.Array) -> None:
    expect_refused(driver, x, np.int64(0), weir.ArgumentError, "pass the handle")
    with pending_write(x, driver):
        x.__dlpack__(stream=np.int64(-1))
        assert driver.pending(handle) == 0
        x.__dlpack__(stream=np.int64(handle))
        assert driver.pending(handle) > 0


def test_x7_later_operations_come_after_the_stream_that_was_named(
    driver: CudaDriver, handle: int, x: weir.Array
) -> None:
    capsule = x.__dlpack__(stream=handle, max_version=(1, 0))
    x.device.synchronize()
    assert fill_that_waits(x, driver, behind=handle) == 2
    del capsule


def test_x7_control_without_a_consumer_nothing_is_waited_for(driver: CudaDriver, handle: int, x: weir.Array) -> None:
    weir.adopt(handle)
    assert fill_that_waits(x, driver, behind=handle) == 0


def test_l5_memory_that_a_consumer_had_is_in_quarantine_until_captures_are_known(
    handle: int, cuda: weir.Device
) -> None:
    x = weir.empty(1 << 20, "uint8", device=cuda)
    before = weir.memory.stats(cuda)["quarantined"]
    capsule = x.__dlpack__(stream=handle, max_version=(1, 0))
    del capsule, x
    gc.collect()
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] >= before + (1 << 20))
    weir.safe_point()
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == 0)


def nothing_is_left_of_other_tests(device: weir.Device) -> bool:
    weir.safe_point()
    return weir.memory.stats(device)["quarantined"] == 0


def released_during_a_capture(driver: CudaDriver, consumer: int, captured: int, device: weir.Device) -> bool:
    """Whether a capture survives that a consumer releases an array of a million bytes. It is in quarantine then."""
    eventually(lambda: nothing_is_left_of_other_tests(device))
    x = weir.empty(1 << 20, "uint8", device=device)
    capsule = x.__dlpack__(stream=consumer, max_version=(1, 0))
    device.synchronize()
    driver.begin_capture(captured)
    try:
        del capsule, x
        gc.collect()
        eventually(lambda: weir.memory.stats(device)["quarantined"] >= 1 << 20)
        y = weir.empty(1 << 20, "uint8", device=device)
        weir.fill(y, 1)
        assert y.numpy(copy=True)[-1] == 1
        assert weir.memory.stats(device)["quarantined"] >= 1 << 20, "its memory is not used again"
    finally:
        survived = driver.end_capture(captured)
    return survived


@pytest.mark.parametrize("whose", ["another", "the consumer's"])
def test_a15_a_consumer_that_releases_during_a_capture_does_not_end_it(
    driver: CudaDriver, handle: int, cuda: weir.Device, whose: str
) -> None:
    """Whichever stream is captured. A safe point after it gives the memory back."""
    captured = handle if whose == "the consumer's" else driver.create_stream()
    assert released_during_a_capture(driver, handle, captured, cuda)
    assert weir.memory.stats(cuda)["quarantined"] >= 1 << 20
    weir.safe_point()
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == 0)


def test_a15_control_where_the_program_has_said_that_there_are_no_captures_it_ends(
    driver: CudaDriver, handle: int, cuda: weir.Device
) -> None:
    weir.captures("none")
    try:
        assert not released_during_a_capture(driver, handle, driver.create_stream(), cuda)
    finally:
        weir.captures("unknown")
    weir.safe_point()
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == 0)


def test_x3_the_interface_names_a_stream_that_waits(driver: CudaDriver, x: weir.Array) -> None:
    s, held = written_late(x, driver)
    interface = x.__cuda_array_interface__
    assert (interface["version"], interface["shape"], interface["typestr"]) == (3, (64,), "<f4")
    assert interface["strides"] is None
    assert interface["data"][1] is False
    assert driver.pending(interface["stream"]) > 0
    driver.open(held)
    s.synchronize()


def test_x3_operations_after_the_interface_was_read_do_not_block(driver: CudaDriver, x: weir.Array) -> None:
    held = driver.hold(x.__cuda_array_interface__["stream"])  # the consumer's work
    s = weir.Stream(x.device)
    enqueues = threading.Thread(target=lambda: weir.fill(x, 2, stream=s), daemon=True)
    enqueues.start()
    enqueues.join(20)
    blocked = enqueues.is_alive()
    was_done = s.done
    driver.open(held)
    enqueues.join()
    s.synchronize()
    assert not blocked, "a consumer with streams is waited for on the device"
    assert not was_done, "the operation comes after the consumer's work"


def test_x3_arrays_elsewhere_have_no_such_interface() -> None:
    assert not hasattr(weir.ones(3), "__cuda_array_interface__")


class OfInterface:
    """An array of another package that has the interface alone."""

    def __init__(self, of: weir.Array, **changes: object) -> None:
        pointer = of.__cuda_array_interface__["data"][0]
        self.__cuda_array_interface__: dict[str, object] = {
            "shape": of.shape,
            "typestr": "<f4",
            "data": (pointer, False),
            "version": 3,
            **changes,
        }


def test_x3_an_import_comes_after_the_stream_that_the_interface_names(
    driver: CudaDriver, handle: int, x: weir.Array
) -> None:
    imported = weir.asarray(OfInterface(x, stream=handle))
    x.device.synchronize()
    assert fill_that_waits(imported, driver, behind=handle) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stream": 0}, "stream 0"),
        ({"mask": object()}, "mask"),
        ({"typestr": "<V7"}, "<V7"),
        ({"typestr": ">f4"}, ">f4"),
        ({"strides": (3,)}, "no multiple"),
        ({"strides": (4, 4)}, "number of strides"),
        ({"shape": (-1,)}, "-1 elements"),
        ({"data": (8, False)}, "no memory of a CUDA device"),
    ],
)
def test_x3_an_interface_that_makes_no_sense(changes: dict[str, object], says: str, x: weir.Array) -> None:
    with pytest.raises(weir.ExchangeError, match=says):
        weir.asarray(OfInterface(x, **changes))


class OfTorch:
    """A tensor of torch, as far as it is asked; its memory is of Weir."""

    def __init__(self, of: weir.Array) -> None:
        self.of = of
        self.asked_with: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None) -> object:
        self.asked_with.append(stream)
        return self.of.__dlpack__(stream=-1, max_version=max_version)


OfTorch.__module__ = "torch"


@pytest.fixture
def torch_on(handle: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The stream that what stands for torch works on."""

    class Current:
        cuda_stream = handle

    cuda = types.SimpleNamespace(current_stream=lambda _: Current(), is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]
    return handle


def test_x6_a_package_is_asked_with_its_own_stream_and_comes_first(
    driver: CudaDriver, torch_on: int, x: weir.Array
) -> None:
    tensor = OfTorch(x)
    imported = weir.asarray(tensor)
    assert tensor.asked_with == [torch_on], "the producer has nothing to wait for"
    x.device.synchronize()
    assert fill_that_waits(imported, driver, behind=torch_on) == 2


def test_a11_the_consumers_current_stream_may_be_another_one_than_at_the_export(
    driver: CudaDriver, cuda: weir.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that says what it works on now is asked then, not at the export."""
    first, second = driver.create_stream(), driver.create_stream()

    class Current:
        cuda_stream = first

    stands = types.SimpleNamespace(current_stream=lambda _: Current(), is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=stands))  # type: ignore[arg-type]
    x = weir.zeros(64, "float32", device=cuda)
    capsule = x.__dlpack__(stream=first, max_version=(1, 0))
    cuda.synchronize()
    assert fill_that_waits(x, driver, behind=first) > 0
    cuda.synchronize()
    Current.cuda_stream = second
    held = driver.hold(first)
    weir.fill(x, 3)
    assert x.numpy(copy=True)[0] == 3, "nothing comes after the stream of the export any more"
    driver.open(held)
    assert fill_that_waits(x, driver, behind=second) > 0, "it comes after the stream that is current now"
    del capsule


def test_a5_the_stream_of_a_consumer_that_weir_does_not_know_may_go(driver: CudaDriver, cuda: weir.Device) -> None:
    """Its handle may be that of another stream then: the array may come after that one as well, and nothing fails."""
    x = weir.zeros(64, "float32", device=cuda)
    consumer = driver.create_stream()
    capsule = x.__dlpack__(stream=consumer, max_version=(1, 0))
    assert fill_that_waits(x, driver, behind=consumer) > 0, "control: while it is there, it is waited for"
    driver.synchronize(consumer)
    cuda.synchronize()
    driver.destroy_stream(consumer)
    weir.fill(x, 3)
    assert x.numpy(copy=True)[0] == 3
    next_one = driver.create_stream()
    weir.fill(x, 4)
    assert x.numpy(copy=True)[0] == 4
    del capsule
    gc.collect()
    cuda.synchronize()
    driver.destroy_stream(next_one)


def test_x6_control_in_manual_ordering_it_does_not(driver: CudaDriver, torch_on: int, x: weir.Array) -> None:
    imported = weir.asarray(OfTorch(x))
    x.device.synchronize()
    with weir.ordering("manual"):
        assert fill_that_waits(imported, driver, behind=torch_on) == 0


def test_x1_what_is_read_only_cannot_be_written_in_any_ordering(x: weir.Array) -> None:
    pointer = x.__cuda_array_interface__["data"][0]
    imported = weir.asarray(OfInterface(x, data=(pointer, True)))
    for mode in ("auto", "manual"):
        with weir.ordering(mode), pytest.raises(weir.ArgumentError, match="for reading only"):
            weir.fill(imported, 1)


class RefusesMinusOne(OfTorch):
    """As JAX: no -1, and no 0, which is the handle of the legacy default stream."""

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None) -> object:
        if stream in (0, -1):
            raise BufferError(f"stream {stream} is refused")
        return super().__dlpack__(stream=stream, max_version=max_version)


RefusesMinusOne.__module__ = "jaxlike"


def test_x2_a_producer_is_asked_with_neither_minus_1_nor_0(driver: CudaDriver, x: weir.Array) -> None:
    of = RefusesMinusOne(x)
    assert weir.asarray(of).shape == x.shape
    assert of.asked_with == [1], "the legacy default stream, of a package that says of none"


def test_l5_a_safe_point_covers_what_was_released_just_before(cuda: weir.Device) -> None:
    def in_use() -> int:
        stats = weir.memory.stats(cuda)
        return stats["live"] + stats["quarantined"]

    eventually(lambda: nothing_is_left_of_other_tests(cuda))
    before = in_use()
    for _ in range(20):
        x = weir.ones(1000, device=cuda)
        cuda.synchronize()
        capsule = x.__dlpack__(stream=-1)
        del x, capsule
        weir.safe_point()
        eventually(lambda: in_use() <= before)


MIB = 1 << 20


class OfDriver:
    """An array of another package, of a million bytes that it has from the driver."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {"shape": (MIB,), "typestr": "|u1", "data": (address, False), "version": 3}


def passed_on(address: int) -> weakref.ref[OfDriver]:
    """The owner of memory that Weir passed on to a consumer, which dropped it."""
    owner = OfDriver(address)
    imported = weir.asarray(owner)
    capsule = imported.__dlpack__(stream=-1, max_version=(1, 0))
    del capsule
    return weakref.ref(owner)


@pytest.fixture
def addresses(driver: CudaDriver, cuda: weir.Device) -> Iterator[list[int]]:
    """Those of memory of another package."""
    eventually(lambda: nothing_is_left_of_other_tests(cuda))
    limit = weir.memory.stats(cuda)["limit"]
    made = [driver.allocate(MIB) for _ in range(4)]
    yield made
    weir.memory.limit(cuda, limit)
    eventually(lambda: nothing_is_left_of_other_tests(cuda))
    for each in made:
        driver.free(each)


def test_l5_memory_of_other_packages_in_quarantine_is_counted(cuda: weir.Device, addresses: list[int]) -> None:
    owner = passed_on(addresses[0])
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == MIB)
    assert owner() is not None, "nothing says that the consumer is done"
    weir.safe_point()
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == 0 and owner() is None)


def are_gone(owners: list[weakref.ref[OfDriver]]) -> bool:
    return all(owner() is None for owner in owners)


def test_x8_an_import_gives_back_what_consumers_are_done_with(cuda: weir.Device, addresses: list[int]) -> None:
    """At the call, in nearly all tries: a thread of Weir's would come to it within 10 ms, and is seldom first."""
    weir.captures("none")
    tries, back = 50, 0
    try:
        for _ in range(tries):
            owners = [passed_on(each) for each in addresses[:3]]
            weir.asarray(OfDriver(addresses[3]))  # releases what is due, and asks the driver
            weir.asarray(OfDriver(addresses[3]))
            back += sum(owner() is None for owner in owners[:2]) == 2
            eventually(functools.partial(are_gone, owners))
    finally:
        weir.captures("unknown")
    assert back > tries // 2


def test_l6_an_import_beyond_the_limit_says_what_to_do(cuda: weir.Device, addresses: list[int]) -> None:
    weir.memory.limit(cuda, 2 * MIB)
    owners = [passed_on(each) for each in addresses[:2]]
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == 2 * MIB)
    third = OfDriver(addresses[2])
    with pytest.raises(weir.OutOfMemory, match=r'declare weir\.captures\("none"\); else call weir\.safe_point\(\)'):
        weir.asarray(third)
    refused = weakref.ref(third)
    del third
    eventually(lambda: refused() is None)
    weir.safe_point()
    owners.append(passed_on(addresses[3]))
    weir.safe_point()
    eventually(lambda: all(each() is None for each in owners))


def test_l6_without_captures_a_loop_of_imports_goes_on(cuda: weir.Device, addresses: list[int]) -> None:
    weir.captures("none")
    try:
        weir.memory.limit(cuda, 2 * MIB)
        owners = [passed_on(addresses[i % len(addresses)]) for i in range(16)]
        eventually(lambda: all(each() is None for each in owners))
    finally:
        weir.captures("unknown")
