"""Memory of packages of the tests' own, on streams of their own, by what reaches the fake driver (X3, X6, A11, A17)."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import weir
from cuda_driver import CudaDriver
from host_waits import comes_to_wait
from weir_conformance._dlpack import Description, Producer, Taken

N = 64


@pytest.fixture
def handle(driver: CudaDriver, cuda: weir.Device) -> int:
    """A stream of another package. It stays: memory that a test handed to it may name it until that is released."""
    return driver.create_stream()


@pytest.fixture
def memory(driver: CudaDriver, cuda: weir.Device) -> Iterator[int]:
    """The address of N floats of another package, all 0."""
    address, stream = driver.allocate(4 * N), driver.create_stream()
    driver.fill(stream, address, 0, N)
    driver.synchronize(stream)
    yield address
    cuda.synchronize()
    driver.free(address)


class OfInterface:
    """An array of a package that Weir does not know, by the CUDA Array Interface."""

    def __init__(self, address: int, **entries: object) -> None:
        self.__cuda_array_interface__ = {"shape": (N,), "typestr": "<f4", "data": (address, False), **entries}


class OfCupy(OfInterface):
    """An array of what stands for CuPy, by version 2 of the interface, which names no stream."""

    def __init__(self, address: int) -> None:
        super().__init__(address, version=2)


OfCupy.__module__ = "cupy"


class OfDlpack(Producer):
    """An array of what stands for CuPy, by DLPack, with work in the stream `on`."""

    def __init__(self, driver: CudaDriver, address: int, on: int, *, keeps_promises: bool = True) -> None:
        super().__init__(Description(None, (N,), device=(2, 0), address=address))
        self.driver, self.on, self.keeps_promises = driver, on, keeps_promises

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.keeps_promises:  # the consumer's stream comes after the package's work
            self.driver.wait_event(keywords["stream"], self.driver.record_event(self.on))
        return super().__dlpack__(**keywords)


OfDlpack.__module__ = "cupy"


@pytest.fixture
def cupy_on(handle: int, monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """The stream that what stands for CuPy works on now: a test may change `ptr`."""
    now = types.SimpleNamespace(ptr=handle, device_id=0)
    stand_in: Any = types.SimpleNamespace(
        cuda=types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(**vars(now))), ndarray=OfCupy
    )
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return now


def hold(driver: CudaDriver, stream: int) -> int:
    """What enters the stream from now on does not run before `driver.open` of what this gives; all else has run."""
    driver.synchronize(stream)
    return driver.hold(stream)


def reading(x: weir.Array) -> tuple[weir.Stream, weir.Array]:
    """A stream of Weir's that copies `x`, and the copy."""
    s = weir.Stream(x.device)
    seen = weir.empty(x.shape, x.dtype, stream=s)
    weir.copy(seen, x, stream=s)
    return s, seen


def held_reading(x: weir.Array, driver: CudaDriver) -> tuple[weir.Stream, weir.Array, int]:
    """The same, where the copy runs once the third value is opened."""
    s = weir.Stream(x.device)
    seen = weir.empty(x.shape, x.dtype, stream=s)
    held = hold(driver, s.handle)
    weir.copy(seen, x, stream=s)
    return s, seen, held


def values(x: weir.Array) -> list[float]:
    """The elements, which are all the same where nothing was cut in two."""
    return sorted(set(x.numpy(copy=True).tolist()))


# --- version 2 of the CUDA Array Interface --------------------------------------------------------------------------


@pytest.mark.parametrize("exclusive", [False, True])
def test_x3_what_a_package_of_version_2_did_before_an_operation_comes_first(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, exclusive: bool
) -> None:
    """Control: with `exclusive=True` the package has let go, and one that breaks that promise is not waited for."""
    imported = weir.asarray(OfCupy(memory), exclusive=exclusive)
    assert imported.shape == (N,)
    held = hold(driver, cupy_on.ptr)
    driver.fill(cupy_on.ptr, memory, 1, N)
    s, seen = reading(imported)
    if exclusive:
        s.synchronize()
        assert values(seen) == [0]
    else:
        assert not s.done
    driver.open(held)
    if not exclusive:
        assert values(seen) == [1]
    driver.synchronize(cupy_on.ptr)


@pytest.mark.parametrize("exclusive", [False, True])
def test_x3_what_a_package_of_version_2_does_after_an_operation_comes_later(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, exclusive: bool
) -> None:
    """Control: with `exclusive=True`, and the promise broken, it does not."""
    imported = weir.asarray(OfCupy(memory), exclusive=exclusive)
    s, seen, held = held_reading(imported, driver)
    driver.fill(cupy_on.ptr, memory, 2, N)
    if exclusive:
        driver.synchronize(cupy_on.ptr)
    else:
        assert driver.pending(cupy_on.ptr) > 0
    driver.open(held)
    s.synchronize()
    assert values(seen) == [2 if exclusive else 0]
    assert set(driver.read(cupy_on.ptr, memory, N)) == {2}


def test_x3_an_exclusive_import_of_version_2_comes_after_what_the_package_did_before_it(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int
) -> None:
    held = hold(driver, cupy_on.ptr)
    driver.fill(cupy_on.ptr, memory, 3, N)
    imported = weir.asarray(OfCupy(memory), exclusive=True)
    s, seen = reading(imported)
    assert not s.done
    driver.open(held)
    assert values(seen) == [3]


def test_a11_an_import_of_version_2_follows_the_stream_that_is_current_at_each_operation(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int
) -> None:
    imported = weir.asarray(OfCupy(memory))
    first, cupy_on.ptr = cupy_on.ptr, driver.create_stream()
    held_first, held = hold(driver, first), hold(driver, cupy_on.ptr)
    driver.fill(cupy_on.ptr, memory, 4, N)
    s, seen = reading(imported)
    assert not s.done
    driver.open(held)
    assert values(seen) == [4], "control: the stream that was current at the import is held still"
    driver.open(held_first)


@pytest.mark.parametrize("known", [True, False])
def test_x6_an_operation_on_an_import_of_version_2_is_over_at_its_return_where_no_stream_is_known(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, known: bool
) -> None:
    """Control: of a package that says which stream it works on, the call does not wait."""
    imported = weir.asarray(OfCupy(memory) if known else OfInterface(memory, version=2))
    s = weir.Stream(imported.device)
    seen = weir.zeros(N, "float32", stream=s)
    held = hold(driver, s.handle)
    calls = threading.Thread(target=lambda: weir.copy(seen, imported, stream=s), daemon=True)
    calls.start()
    if known:
        calls.join(20)
    waits = comes_to_wait(calls)
    was_done = s.done
    driver.open(held)
    calls.join()
    assert waits != known
    assert not was_done
    s.synchronize()


# --- A17: order is handed back by a second conversion ---------------------------------------------------------------


def import_of(driver: CudaDriver, memory: int, on: int, protocol: str) -> weir.Array:
    """An array that works on the stream `on`, as the kernel of a library takes it."""
    if protocol == "interface":
        return weir.asarray(OfInterface(memory, version=3, stream=on))
    return weir.from_dlpack(OfDlpack(driver, memory, on))


def converted_for(driver: CudaDriver, x: weir.Array, stream: int, protocol: str) -> None:
    """What a package does that takes `x` for work on its stream."""
    if protocol == "interface":
        named = x.__cuda_array_interface__["stream"]
        driver.wait_event(stream, driver.record_event(named))
    else:
        Taken(x.__dlpack__(stream=stream, max_version=(1, 0))).close()


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
@pytest.mark.parametrize("mode", ["auto", "manual"])
@pytest.mark.parametrize("converted", ["operand", "result"])
def test_a17_a_second_conversion_hands_order_back_to_the_producer(
    driver: CudaDriver,
    cupy_on: types.SimpleNamespace,
    memory: int,
    protocol: str,
    mode: Literal["auto", "manual"],
    converted: str,
) -> None:
    """`res = kernel(arr); arr += 2`, by a kernel of Weir's that converts the operand or its result at its end."""
    handle = cupy_on.ptr
    with weir.ordering(mode):
        operand = import_of(driver, memory, handle, protocol)
        s, result, held = held_reading(operand, driver)
        converted_for(driver, operand if converted == "operand" else result, handle, protocol)
        driver.fill(handle, memory, 2, N)
        assert driver.pending(handle) > 0, "it comes after the kernel"
        driver.open(held)
        s.synchronize()
    assert values(result) == [0]
    assert set(driver.read(handle, memory, N)) == {2}


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_a17_control_in_manual_ordering_the_conversion_alone_hands_it_back(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, protocol: str
) -> None:
    handle = cupy_on.ptr
    with weir.ordering("manual"):
        operand = import_of(driver, memory, handle, protocol)
        s, result, held = held_reading(operand, driver)
        driver.fill(handle, memory, 2, N)
        driver.synchronize(handle)
        driver.open(held)
        s.synchronize()
    assert values(result) == [2], "the kernel read what came later"


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
@pytest.mark.parametrize("again", [True, False])
def test_a17_a_consumer_that_converts_an_array_of_weirs_a_second_time_comes_before_later_operations(
    driver: CudaDriver, cuda: weir.Device, handle: int, protocol: str, again: bool
) -> None:
    """The first conversion names no stream, so that Weir does not know of the consumer's. Control: once alone."""
    arr = weir.zeros(N, "float32", device=cuda)
    cuda.synchronize()
    taken = Taken(arr.__dlpack__(stream=-1, max_version=(1, 0)))
    held = hold(driver, handle)
    driver.fill(handle, taken.address, 5, N)
    second = None
    if again and protocol == "dlpack":
        second = Taken(arr.__dlpack__(stream=handle, max_version=(1, 0)))
    elif again:
        named = arr.__cuda_array_interface__["stream"]
        driver.wait_event(named, driver.record_event(handle))  # as the interface asks at the end of a consumer's work
    s, seen = reading(arr)
    if again:
        assert not s.done
        driver.open(held)
        assert values(seen) == [5]
    else:
        s.synchronize()
        assert values(seen) == [0]
        driver.open(held)
    driver.synchronize(handle)
    for one in (second, taken):
        if one is not None:
            one.close()


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
@pytest.mark.parametrize("hands_back", [True, False])
def test_a17_what_a_library_hands_back_to_weir_comes_after_the_librarys_kernel(
    driver: CudaDriver, cuda: weir.Device, cupy_on: types.SimpleNamespace, protocol: str, hands_back: bool
) -> None:
    """The kernel ran on a stream that is not the library's current one. Control: a library that does not join them."""
    handle, cupy_on.ptr = cupy_on.ptr, driver.create_stream()
    arr = weir.zeros(N, "float32", device=cuda)
    cuda.synchronize()
    taken = Taken(arr.__dlpack__(stream=-1, max_version=(1, 0)))
    held = hold(driver, handle)
    driver.fill(handle, taken.address, 6, N)
    if protocol == "dlpack":
        back = weir.asarray(OfDlpack(driver, taken.address, handle, keeps_promises=hands_back))
    else:
        named = handle if hands_back else cupy_on.ptr
        back = weir.asarray(OfInterface(taken.address, version=3, stream=named))
    s, seen = reading(back)
    if hands_back:
        assert not s.done
        driver.open(held)
        assert values(seen) == [6]
    else:
        s.synchronize()
        assert values(seen) == [0]
        driver.open(held)
    driver.synchronize(handle)
    taken.close()


@pytest.mark.parametrize("producers", ["a stream", "the legacy default stream"])
def test_a17_a_kernel_that_weir_does_not_see_is_told_and_handed_back(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, producers: str
) -> None:
    """`used_on` says where the kernel ran; the conversion has the producer's stream wait for it, and not the host."""
    consumer = driver.create_stream()
    if producers != "a stream":
        cupy_on.ptr = 1
    x = weir.asarray(OfCupy(memory))
    driver.synchronize(cupy_on.ptr)
    held = hold(driver, consumer)
    driver.fill(consumer, memory, 5, N)  # the kernel
    x.used_on(weir.adopt(consumer, device="cuda:0"))
    Taken(x.__dlpack__(stream=cupy_on.ptr, max_version=(1, 0))).close()
    assert driver.pending(consumer) > 0, "the host has not waited"
    driver.fill(cupy_on.ptr, memory, 2, N)
    assert driver.pending(cupy_on.ptr) > 0, "the producer comes after the kernel"
    driver.open(held)
    driver.synchronize(consumer)
    driver.synchronize(cupy_on.ptr)
    assert set(driver.read(consumer, memory, N)) == {2}


# --- X8: sharing --------------------------------------------------------------------------------------------------


def host_waits(driver: CudaDriver) -> int:
    """How often this thread called the driver to wait on the host."""
    names = ("cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize")
    return sum(driver.own_calls(name) for name in names)


def test_x8_sharing_makes_the_driver_wait_on_the_host_never(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int
) -> None:
    """Of memory that its package is at work on, for a consumer that is as busy."""
    consumer = driver.create_stream()
    Taken(weir.share(OfCupy(memory)).__dlpack__(stream=consumer, max_version=(1, 0))).close()  # what a first use makes
    of_producer, of_consumer = hold(driver, cupy_on.ptr), hold(driver, consumer)
    driver.fill(cupy_on.ptr, memory, 8, N)
    driver.fill(consumer, memory, 9, N)
    before = host_waits(driver)
    for _ in range(20):
        Taken(weir.share(OfCupy(memory)).__dlpack__(stream=consumer, max_version=(1, 0))).close()
    assert host_waits(driver) == before
    assert driver.pending(cupy_on.ptr) > 0
    assert driver.pending(consumer) > 20, "each time it waits on the device"
    driver.open(of_consumer)
    driver.open(of_producer)
    driver.synchronize(consumer)
    assert host_waits(driver) == before + 1, "control: a wait is counted"


# --- F11: what `check` says of memory of other packages ---------------------------------------------------------------

WAYS = ["version 2", "dlpack", "interface"]


def imported(driver: CudaDriver, memory: int, on: int, way: str) -> weir.Array:
    """By version 2 of the interface, which names no stream, of a package whose current stream Weir asks for."""
    return weir.asarray(OfCupy(memory)) if way == "version 2" else import_of(driver, memory, on, way)


def told(driver: CudaDriver, memory: int, on: int, way: str, orders: bool) -> list[weir.Race]:
    """What a check reports of a write and a read of an import on two streams, with an event between if it `orders`."""
    x = imported(driver, memory, on, way)
    a, b = weir.Stream(x.device, name="a"), weir.Stream(x.device, name="b")
    y = weir.zeros(N, "float32", device=x.device)
    x.device.synchronize()
    with weir.check() as report, weir.ordering("manual"):
        weir.fill(x, 1, stream=a, label="writes")
        if orders:
            b.wait(a.record())
        weir.copy(y, x, stream=b, label="reads")
    x.device.synchronize()
    return list(report)


@pytest.mark.parametrize("way", WAYS)
def test_f11_a_race_on_an_import_is_reported_with_both_lines_and_the_mend(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, way: str
) -> None:
    (race,) = told(driver, memory, cupy_on.ptr, way, orders=False)
    assert (race.kind, race.first.label, race.second.label) == ("RAW", "writes", "reads")
    assert (race.first.stream, race.second.stream) == ("a", "b")
    assert race.first.file == race.second.file == __file__
    assert race.second.line == race.first.line + 3
    assert race.mend.startswith("e = a.record()")
    assert "b.wait(e)" in race.mend
    assert told(driver, memory, cupy_on.ptr, way, orders=True) == [], "the mend is one"


@pytest.mark.parametrize("way", WAYS)
def test_f11_what_weir_orders_is_reported_as_if_it_did_not_where_that_is_asked_for(
    driver: CudaDriver, cupy_on: types.SimpleNamespace, memory: int, way: str
) -> None:
    x = imported(driver, memory, cupy_on.ptr, way)
    a, b = weir.Stream(x.device), weir.Stream(x.device)
    y = weir.zeros(N, "float32", device=x.device)
    x.device.synchronize()
    found = []
    for assume in (None, "manual"):
        with weir.check(assume=assume) as report:
            weir.fill(x, 1, stream=a)
            weir.copy(y, x, stream=b)
        found.append([race.kind for race in report])
        x.device.synchronize()
    assert found == [[], ["RAW"]]
    assert values(y) == [1]
