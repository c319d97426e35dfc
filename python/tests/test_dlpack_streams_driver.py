"""DLPack's streams on a CUDA device (scenarios B1 to B4), by what reaches the fake driver."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import types
from collections.abc import Callable
from typing import TypeVar

import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from host_waits import comes_to_wait
from raw_tensors import OnStream, foreign
from weir_conformance._dlpack import READ_ONLY

T = TypeVar("T")
Place = tuple[int, int] | str | weir.Device


@pytest.fixture
def theirs(driver: CudaDriver, cuda: weir.Device) -> OnStream:
    """An array of a package that does not say what its current stream is."""
    return OnStream(driver)


class OfTorch(OnStream):
    """An array of what stands for torch, which says what its current stream is."""


OfTorch.__module__ = "torch"


@pytest.fixture
def tensor(driver: CudaDriver, cuda: weir.Device, monkeypatch: pytest.MonkeyPatch) -> OfTorch:
    """An array of what stands for torch. The current stream of torch is that of the array."""
    made = OfTorch(driver)
    current = types.SimpleNamespace(cuda_stream=made.stream)
    of_cuda = types.SimpleNamespace(current_stream=lambda _: current, is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=of_cuda))
    return made


def on_another_thread(call: Callable[[], T]) -> T:
    """What the call gives there. What it raises is raised here."""
    given: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return given[0]


# B1: the default stream of a thread, as a cell of the stream table.


def test_b1_the_default_stream_of_a_thread_is_for_that_thread(driver: CudaDriver, x: weir.Array) -> None:
    s = weir.Stream(x.device)
    held = driver.hold(s.handle)
    weir.fill(x, 1, stream=s)
    capsule = x.__dlpack__(stream=2, max_version=(1, 0))
    assert driver.pending(2) > 0
    driver.open(held)
    driver.synchronize(2)
    weir.fill(x, 2)
    assert x.numpy(copy=True)[0] == 2
    del capsule


def released(x: weir.Array, stream: int | None) -> bool:
    """Whether an export to the stream is over soon after the consumer has released it."""
    x.__dlpack__(stream=stream, max_version=(1, 0))
    for _ in range(100):
        if weir.explain(x).shared_with == []:
            return True
        gc.collect()
        weir.synchronize()  # gives the thread that releases time
    return False


@pytest.mark.parametrize("stream", [None, 1])
def test_b1_control_an_export_ends_with_its_release(x: weir.Array, driver: CudaDriver, stream: int | None) -> None:
    assert released(x, stream)
    assert released(x, driver.create_stream())


def test_b1_an_export_to_the_default_stream_of_a_thread_ends_with_its_release(
    driver: CudaDriver, x: weir.Array
) -> None:
    assert released(x, 2)


def test_b1_other_threads_use_what_was_exported_to_the_default_stream_of_a_thread(
    driver: CudaDriver, x: weir.Array
) -> None:
    x.__dlpack__(stream=2, max_version=(1, 0))
    gc.collect()
    on_another_thread(lambda: weir.fill(x, 1)).wait()
    assert x.numpy(copy=True)[0] == 1


@pytest.mark.parametrize("tied", [True, False])
def test_b1_what_other_threads_do_comes_after_the_threads_default_stream(
    driver: CudaDriver, x: weir.Array, tied: bool
) -> None:
    """By the legacy default stream, which all threads can use. Control: an export that names no stream."""
    capsule = x.__dlpack__(stream=2 if tied else -1, max_version=(1, 0))
    s = weir.Stream(x.device)
    driver.synchronize(2)
    held = driver.hold(2)
    driver.record_event(2)  # the thread's work
    done = on_another_thread(lambda: weir.fill(x, 1, stream=s))
    if not tied:
        done.wait()
    assert done.done != tied
    driver.open(held)
    done.wait()
    del capsule


def test_b1_the_main_thread_uses_what_a_thread_that_has_ended_exported(driver: CudaDriver, x: weir.Array) -> None:
    capsule = on_another_thread(lambda: x.__dlpack__(stream=2, max_version=(1, 0)))
    weir.fill(x, 1).wait()
    del capsule


# B2: what other code captures meanwhile. -1 is in test_exchange_driver.py.

MODES = pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread-local", "relaxed"])
THREADS = pytest.mark.parametrize("elsewhere", [False, True], ids=["same thread", "another thread"])
NAMED = pytest.mark.parametrize("named", [{}, {"stream": None}, {"stream": 1}], ids=["omitted", "None", "1"])


def exported(x: weir.Array, elsewhere: bool, **named: int | None) -> object:
    """A capsule, which this thread or another one asks for."""

    def call() -> object:
        return x.__dlpack__(max_version=(1, 0), **named)

    return on_another_thread(call) if elsewhere else call()


@pytest.mark.parametrize("is_pending", [False, True], ids=["complete", "pending"])
@NAMED
@THREADS
@MODES
def test_b2_an_export_does_not_end_the_capture_of_a_non_blocking_stream(
    driver: CudaDriver, x: weir.Array, mode: int, elsewhere: bool, named: dict[str, int | None], is_pending: bool
) -> None:
    s, captured = weir.Stream(x.device), driver.create_stream()
    held = driver.hold(s.handle)
    if is_pending:
        weir.fill(x, 1, stream=s)
    driver.begin_capture(captured, mode)
    try:
        capsule = exported(x, elsewhere, **named)
        assert not is_pending or driver.pending(1) > 0, "the legacy default stream waits"
    finally:
        survived = driver.end_capture(captured)
        driver.open(held)
    assert survived
    assert weir.from_dlpack(capsule).numpy(copy=True)[0] == is_pending


@NAMED
@THREADS
@MODES
def test_b2_an_export_to_a_stream_that_a_capture_forbids_is_refused_and_changes_nothing(
    driver: CudaDriver, x: weir.Array, mode: int, elsewhere: bool, named: dict[str, int | None]
) -> None:
    """The legacy default stream is ordered with blocking streams: it cannot be used while one of them is captured."""
    s, captured = weir.Stream(x.device), driver.create_stream(blocking=True)
    held = driver.hold(s.handle)
    weir.fill(x, 1, stream=s)
    before = driver.calls("cuStreamWaitEvent")
    driver.begin_capture(captured, mode)
    try:
        with pytest.raises(weir.StateError, match="call this before the capture begins, or on another stream"):
            exported(x, elsewhere, **named)
        weir.fill(x, 2, stream=s)
        assert weir.explain(x).shared_with == []
    finally:
        survived = driver.end_capture(captured)
        driver.open(held)
    assert survived
    assert driver.calls("cuStreamWaitEvent") == before, "no stream waits for another"
    assert weir.from_dlpack(exported(x, elsewhere, **named)).numpy(copy=True)[0] == 2


def test_b2_an_export_to_the_captured_stream_is_refused_and_changes_nothing(driver: CudaDriver, x: weir.Array) -> None:
    captured = driver.create_stream()
    driver.begin_capture(captured)
    try:
        with pytest.raises(weir.StateError, match="call this before the capture begins, after its end, or on another"):
            exported(x, False, stream=captured)
        assert weir.explain(x).shared_with == []
    finally:
        survived = driver.end_capture(captured)
    assert survived
    assert weir.from_dlpack(exported(x, False, stream=captured)).shape == x.shape


@MODES
def test_b2_an_import_does_not_end_the_capture_of_a_non_blocking_stream(
    driver: CudaDriver, theirs: OnStream, mode: int
) -> None:
    captured = driver.create_stream()
    theirs.fill(3)
    driver.begin_capture(captured, mode)
    try:
        y = weir.from_dlpack(theirs)
    finally:
        survived = driver.end_capture(captured)
    assert survived
    assert y.numpy(copy=True).tolist() == [3] * 4


@MODES
def test_b2_an_import_by_a_stream_that_a_capture_forbids_is_refused(
    driver: CudaDriver, theirs: OnStream, mode: int
) -> None:
    captured = driver.create_stream(blocking=True)
    driver.begin_capture(captured, mode)
    try:
        with pytest.raises(weir.StateError, match="call this before the capture begins, or on another stream"):
            weir.from_dlpack(theirs)
    finally:
        survived = driver.end_capture(captured)
    assert survived
    assert weir.from_dlpack(theirs).numpy(copy=True).tolist() == [0] * 4


def test_b2_control_work_in_the_legacy_default_stream_ends_the_capture_of_a_blocking_stream(
    driver: CudaDriver, theirs: OnStream
) -> None:
    captured = driver.create_stream(blocking=True)
    address = driver.allocate(16)
    driver.begin_capture(captured)
    with contextlib.suppress(RuntimeError):
        driver.fill(1, address, 0, 4)
    assert not driver.end_capture(captured)
    driver.free(address)


# B3: without stream=, both sides' current streams.


def test_b3_an_import_without_stream_is_ordered_with_the_current_streams_of_both_sides(
    driver: CudaDriver, tensor: OfTorch
) -> None:
    held = driver.hold(tensor.stream)
    tensor.fill(5)
    with weir.Stream("cuda:0") as s:
        y = weir.from_dlpack(tensor)
        z = y + 1
        assert [each["stream"] for each in tensor.asked_with] == [tensor.stream]
        assert driver.pending(s.handle) > 0, "the operation is in Weir's current stream, and waits for the producer's"
        tensor.fill(9)  # comes after it
        driver.open(held)
    assert z.numpy(copy=True).tolist() == [6] * 4
    assert y.numpy(copy=True).tolist() == [9] * 4


def test_b3_control_in_manual_ordering_the_operation_reads_what_was_there(driver: CudaDriver, tensor: OfTorch) -> None:
    held = driver.hold(tensor.stream)
    tensor.fill(5)
    with weir.ordering("manual"), weir.Stream("cuda:0") as s:
        z = weir.from_dlpack(tensor) + 1
        s.synchronize()
        assert driver.pending(tensor.stream) > 0
        driver.open(held)
        driver.synchronize(tensor.stream)
    assert z.numpy(copy=True).tolist() == [1] * 4


def test_b3_an_import_of_a_package_that_names_no_stream_is_ordered_by_the_legacy_default_stream(
    driver: CudaDriver, theirs: OnStream
) -> None:
    """Weir cannot ask for its current stream later, so each operation is over when its call returns (rule X6)."""
    held = driver.hold(theirs.stream)
    theirs.fill(5)
    made: list[weir.Array] = []

    def consumes() -> None:
        with weir.Stream("cuda:0"):
            made.append(weir.from_dlpack(theirs) + 1)

    thread = threading.Thread(target=consumes)
    thread.start()
    waited = comes_to_wait(thread)
    driver.open(held)
    thread.join()
    assert waited
    assert [each["stream"] for each in theirs.asked_with] == [1]
    theirs.fill(9)
    driver.synchronize(theirs.stream)
    assert made[0].numpy(copy=True).tolist() == [6] * 4


def test_b3_an_export_is_ordered_with_the_current_streams_of_both_sides(
    driver: CudaDriver, tensor: OfTorch, x: weir.Array
) -> None:
    """The consumer passes its current stream, as from_dlpack of torch and CuPy does."""
    with weir.Stream(x.device) as s:
        held = driver.hold(s.handle)
        weir.fill(x, 5)
        capsule = x.__dlpack__(stream=tensor.stream, max_version=(1, 0))
        consumers_address = x.__cuda_array_interface__["data"][0]
        reads = driver.record_event(tensor.stream)
        assert not driver.is_over(reads), "the consumer's current stream waits for Weir's"
        driver.open(held)
    assert driver.read(tensor.stream, consumers_address, 4) == [5] * 4
    del capsule


# B4: a producer on a CUDA device, and an array on the CPU.

CPUS: list[Place] = [(1, 0), "cpu", weir.Device("cpu")]
OF_ANY_PACKAGE = pytest.mark.parametrize("kind", ["theirs", "tensor"])


@OF_ANY_PACKAGE
@pytest.mark.parametrize("place", CPUS, ids=str)
def test_b4_to_the_cpu_it_is_copied_once_the_producers_work_is_complete(
    driver: CudaDriver, request: pytest.FixtureRequest, kind: str, place: Place
) -> None:
    of: OnStream = request.getfixturevalue(kind)
    held = driver.hold(of.stream)
    of.fill(7)
    made: list[weir.Array] = []
    thread = threading.Thread(target=lambda: made.append(weir.from_dlpack(of, device=place)))
    thread.start()
    waited = comes_to_wait(thread)
    assert made == []
    driver.open(held)
    thread.join()
    assert waited
    [copied] = made
    assert copied.device == weir.Device("cpu")
    assert copied.ready
    assert weir.explain(copied).copied
    assert weir.explain(copied).host_blocked
    of.fill(8)
    driver.synchronize(of.stream)
    assert copied.tolist() == [7] * 4, "it is a copy"


@OF_ANY_PACKAGE
@pytest.mark.parametrize("place", [*CPUS, "sim:0"], ids=str)
def test_b4_copy_false_is_an_error_of_both_kinds(request: pytest.FixtureRequest, kind: str, place: Place) -> None:
    of: OnStream = request.getfixturevalue(kind)
    for call in (weir.from_dlpack, weir.asarray):
        for error in (weir.CopyError, BufferError, ValueError):
            with pytest.raises(error, match="has to be copied, and copy=False forbids that"):
                call(of, device=place, copy=False)
    eventually(lambda: of.raw.mistakes == "")


@OF_ANY_PACKAGE
@pytest.mark.parametrize("place", [(2, 0), "cuda:0", weir.Device], ids=["DLPack", "name", "Device"])
def test_b4_control_on_its_own_device_it_is_the_same_memory(
    driver: CudaDriver, request: pytest.FixtureRequest, kind: str, place: Place | type[weir.Device]
) -> None:
    of: OnStream = request.getfixturevalue(kind)
    y = weir.from_dlpack(of, device=place("cuda:0") if isinstance(place, type) else place, copy=False)
    weir.fill(y, 3).wait()
    assert of.raw.what.address is not None
    assert driver.read(of.stream, of.raw.what.address, 4) == [3] * 4


def test_b9_an_export_that_is_refused_calls_no_driver(driver: CudaDriver, x: weir.Array) -> None:
    constant = weir.from_dlpack(foreign(x, flags=READ_ONLY))
    before = driver.own_calls()
    with pytest.raises(weir.ExchangeError, match="read-only"):
        constant.__dlpack__(stream=1)
    assert driver.own_calls() == before
    constant.__dlpack__(stream=1, max_version=(1, 0))
    assert driver.own_calls() > before, "control: one that is not refused does"


def test_x8_explain_names_what_uses_a_stream(driver: CudaDriver, x: weir.Array) -> None:
    capsule = x.__dlpack__(stream=1, max_version=(1, 0))
    assert [line.partition(":")[0] for line in weir.explain(x).shared_with] == ["a consumer with a stream"]
    del capsule
    y = weir.zeros(4, "float32", device=x.device)
    assert y.__cuda_array_interface__["stream"] > 2
    assert [line.partition(":")[0] for line in weir.explain(y).shared_with] == [
        "a consumer of the CUDA Array Interface"
    ]
