"""weir.borrow on CUDA, by what reaches the fake driver (X6, A13)."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from weir import _borrow


class Stream:
    """What stands for a stream of CuPy's: a `with` makes it the current one until its end, and `use` for good.

    The end of a `with` makes the stream current that an outer one has named, or the first one, whatever `use` named.
    """

    current: Stream
    named: list[Stream]  # the first one, and those of the blocks that are entered
    entered: list[int]  # the handles of all that were made current

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr
        self.device_index = 0  # torch's

    @staticmethod
    def from_external(stream: weir.Stream) -> Stream:
        assert stream.handle is not None
        return Stream(stream.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.ptr)

    def __enter__(self) -> Stream:
        Stream.current = self
        Stream.named.append(self)
        Stream.entered.append(self.ptr)
        return self

    def __exit__(self, *_: object) -> None:
        Stream.named.pop()
        Stream.current = Stream.named[-1]

    def use(self) -> None:
        Stream.current = self


class OfCupy:
    """An array of CuPy, as far as it is asked; its memory is of Weir."""

    def __init__(self, of: weir.Array) -> None:
        self.of = of

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None) -> object:
        capsule: Any = self.of.__dlpack__(stream=-1, max_version=max_version)
        return capsule


OfCupy.__module__ = "cupy"


@pytest.fixture
def cupys(driver: CudaDriver, cuda: weir.Device, monkeypatch: pytest.MonkeyPatch) -> int:
    """The stream that what stands for CuPy works on."""
    Stream.current, Stream.entered = Stream(driver.create_stream()), []
    Stream.named = [Stream.current]
    stands = types.SimpleNamespace(get_current_stream=lambda: Stream.current, Stream=Stream)
    stand_in: Any = types.SimpleNamespace(cuda=stands, ndarray=OfCupy)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return Stream.current.ptr


def handle_of(s: weir.Stream) -> int:
    assert s.handle is not None
    return s.handle


def arrays(count: int) -> list[OfCupy]:
    made = [OfCupy(weir.zeros(100, "float32", device="cuda:0")) for _ in range(count)]
    weir.synchronize("cuda:0")
    return made


@contextlib.contextmanager
def held(driver: CudaDriver, s: weir.Stream) -> Iterator[None]:
    """What enters the stream in the block runs after it: the stream has reached the block's begin."""
    driver.synchronize(handle_of(s))
    gate = driver.hold(handle_of(s))
    try:
        yield
    finally:
        driver.open(gate)


def test_x6_the_borrowed_stream_waits_for_the_packages_work(driver: CudaDriver, cupys: int) -> None:
    x, s = arrays(1)[0], weir.Stream("cuda:0")
    gate = driver.hold(cupys)
    try:
        with weir.borrow(x, stream=s):
            assert not driver.is_idle(handle_of(s)), "it waits for what the package has put into its stream"
    finally:
        driver.open(gate)
    s.synchronize()


def test_x6_entering_keeps_the_package_from_nothing(driver: CudaDriver, cupys: int) -> None:
    x, s = arrays(1)[0], weir.Stream("cuda:0")
    with held(driver, s):
        with weir.borrow(x, stream=s):
            eventually(lambda: driver.is_idle(cupys))  # its stream waits for the borrowed one at the exit alone
        assert not driver.is_idle(cupys)
    s.synchronize()


def test_x6_the_packages_next_work_waits_for_the_borrowed_stream(driver: CudaDriver, cupys: int) -> None:
    """The exit hands back: what the block put into the stream comes before what the package does afterwards."""
    x, y = arrays(2)
    s = weir.Stream("cuda:0")
    with contextlib.ExitStack() as work:
        with weir.borrow(x, y, write=[y], stream=s):
            driver.synchronize(cupys)
            work.enter_context(held(driver, s))  # stands for what the block puts into its stream
        assert not driver.is_idle(cupys)
    driver.synchronize(cupys)


def test_x6_control_a_stream_that_no_package_works_on_is_not_waited_for(driver: CudaDriver, cupys: int) -> None:
    x = weir.zeros(100, "float32", device="cuda:0")
    weir.synchronize("cuda:0")
    s = weir.Stream("cuda:0")
    with contextlib.ExitStack() as work:
        with weir.borrow(x, stream=s):
            work.enter_context(held(driver, s))
        assert driver.is_idle(cupys), "no array of the package was lent"
    s.synchronize()


def test_a13_the_stream_is_the_packages_current_one_inside_alone(driver: CudaDriver, cupys: int) -> None:
    x, s = arrays(1)[0], weir.Stream("cuda:0")
    with weir.borrow(x, stream=s):
        assert Stream.current.ptr == s.handle
    assert Stream.current.ptr == cupys
    with pytest.raises(KeyError), weir.borrow(x, stream=s):
        raise KeyError("in the block")
    assert Stream.current.ptr == cupys
    assert Stream.entered == [s.handle, s.handle]


def test_a13_a_stream_that_the_program_uses_for_good_is_current_again(driver: CudaDriver, cupys: int) -> None:
    x, s, used = arrays(1)[0], weir.Stream("cuda:0"), Stream(driver.create_stream())
    used.use()
    with weir.borrow(x, stream=s):
        assert Stream.current.ptr == s.handle
    assert Stream.current is used
    assert used.ptr != cupys


def test_x6_a_borrow_is_not_left_while_its_stream_is_made_current(
    driver: CudaDriver, cupys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, s = arrays(1)[0], weir.Stream("cuda:0")
    lent: Any = weir.borrow(x, stream=s)
    enters = Stream.__enter__

    def leaves(self: Stream) -> Stream:
        with pytest.raises(weir.StateError, match="not entered"):
            lent.__exit__(None, None, None)
        return enters(self)

    monkeypatch.setattr(Stream, "__enter__", leaves)
    with lent:
        assert Stream.current.ptr == s.handle
    assert Stream.current.ptr == cupys


def test_a_borrow_is_entered_once() -> None:
    lent = weir.borrow(weir.zeros(3))
    with lent:
        pass
    with pytest.raises(weir.StateError, match="entered once"), lent:
        pass


class OfTorch(OfCupy):
    """The same of torch."""


OfTorch.__module__ = "torch"


@pytest.mark.parametrize("has_numbers", [True, False])
def test_x6_torch_is_asked_for_the_handle_of_its_stream(
    driver: CudaDriver, cupys: int, monkeypatch: pytest.MonkeyPatch, has_numbers: bool
) -> None:
    """A version without the function for that gives a stream object."""
    asked: list[int] = []

    def number(device_id: int) -> int:
        asked.append(device_id)
        return cupys

    cuda = types.SimpleNamespace(
        is_available=lambda: False, is_initialized=lambda: True, current_stream=lambda _: Stream.current
    )
    inner = types.SimpleNamespace(_cuda_getCurrentRawStream=number) if has_numbers else types.SimpleNamespace()
    stand_in: Any = types.SimpleNamespace(cuda=cuda, _C=inner, Tensor=OfTorch)
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    monkeypatch.delitem(sys.modules, "cupy")
    x = OfTorch(weir.zeros(100, "float32", device="cuda:0"))
    weir.synchronize("cuda:0")
    s = weir.Stream("cuda:0")
    gate = driver.hold(cupys)
    try:
        with weir.borrow(x, stream=s):
            assert not driver.is_idle(handle_of(s)), "it waits for torch's stream"
    finally:
        driver.open(gate)
    s.synchronize()
    assert bool(asked) == has_numbers


def test_a13_the_stream_is_torchs_current_one_inside_alone(
    driver: CudaDriver, cupys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `set_stream` of an ExternalStream, on the stream's own device; restored after an exception, too."""
    devices: list[int] = []
    made_current: list[int] = []

    def external(ptr: int, device: int) -> Stream:
        devices.append(device)
        return Stream(ptr)

    def set_stream(one: Stream) -> None:
        Stream.current = one
        made_current.append(one.ptr)

    cuda = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        current_stream=lambda _=None: Stream.current,
        ExternalStream=external,
        set_stream=set_stream,
    )
    stand_in: Any = types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(), Tensor=OfTorch)
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.setattr(_borrow, "_torch_has_cuda", False)
    _borrow._stream_of_torch.cache_clear()
    x = OfTorch(weir.zeros(100, "float32", device="cuda:0"))
    weir.synchronize("cuda:0")
    s = weir.Stream("cuda:0")
    with weir.borrow(x, stream=s):
        assert Stream.current.ptr == s.handle
    assert Stream.current.ptr == cupys
    with pytest.raises(KeyError), weir.borrow(x, stream=s):
        raise KeyError("in the block")
    assert Stream.current.ptr == cupys
    assert made_current == [s.handle, cupys, s.handle, cupys]
    assert set(devices) == {0}
    _borrow._stream_of_torch.cache_clear()
