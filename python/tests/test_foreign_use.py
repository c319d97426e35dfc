"""Array.used_on and Array.pin (X7, L5), and explain() of exchanges (X5)."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from host_waits import opened_when_the_host_waits
from weir.testing import Gate


def reading(x: weir.Array) -> weir.Stream:
    """A stream on which an operation reads `x`."""
    s = weir.Stream(x.device)
    weir.copy(weir.empty(x.shape, x.dtype, stream=s), x, stream=s)
    return s


@pytest.mark.parametrize("as_event", [False, True])
def test_x7_what_is_enqueued_later_comes_after_a_use_that_was_told(device: weir.Device, as_event: bool) -> None:
    x = weir.zeros(8, device=device)
    device.synchronize()
    theirs = weir.Stream(device)
    with Gate() as gate:
        gate.hold(theirs)
        reading(x).synchronize()  # control: a reader does not wait for a stream that Weir does not know
        x.used_on(theirs.record() if as_event else theirs)
        reader = reading(x)
        third = weir.Stream(device)
        weir.fill(weir.empty(4, stream=third), 1, stream=third)
        third.synchronize()
        assert not reader.done
        gate.open()
    reader.synchronize()
    assert theirs.done


def test_x7_an_exclusive_use_ends_the_export() -> None:
    x = weir.zeros(4)
    weir.Device("cpu").synchronize()
    view = np.from_dlpack(x)
    s = weir.Stream()
    x.used_on(s, exclusive=True)
    gate = Gate()
    gate.hold(s)
    weir.fill(x, 1, stream=s)  # would block for ever while NumPy had the memory
    gate.open()
    s.synchronize()
    assert view.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("what", [None, "s", 1.5, object()])
def test_x7_what_is_no_stream_and_no_event(what: object) -> None:
    with pytest.raises(weir.ArgumentTypeError):
        weir.zeros(2).used_on(what)


def test_x7_pinned_memory_stays_reserved() -> None:
    weir.Device("cpu").synchronize()
    before = weir.memory.stats("cpu")["live"]
    x = weir.zeros(1 << 20, "uint8")
    weir.Device("cpu").synchronize()
    held = x.pin()
    del x
    gc.collect()
    assert weir.memory.stats("cpu")["live"] >= before + (1 << 20)
    assert not held.released
    held.release()
    held.release()
    assert held.released
    eventually(lambda: weir.memory.stats("cpu")["live"] <= before)


def test_x7_a_pin_is_a_context() -> None:
    with weir.zeros(3).pin() as held:
        assert not held.released
    assert held.released


def test_x7_an_empty_array_is_pinned_like_any_other() -> None:
    with weir.zeros(0).pin() as held:
        assert not held.released
    assert held.released
    weir.zeros((2, 0)).pin()


def test_x5_explain_says_how_an_array_came_and_went() -> None:
    of = np.arange(3.0)
    came = weir.explain(weir.asarray(of))
    assert (came.protocol, came.went_out, came.copied, came.host_blocked) == ("buffer protocol", False, False, False)
    assert "came by buffer protocol, not copied" in str(came)
    assert weir.explain(weir.from_dlpack(of)).protocol == "DLPack"
    converted = weir.explain(weir.asarray(of, dtype="float32"))
    assert (converted.protocol, converted.copied) == ("buffer protocol", True)
    assert weir.explain(weir.asarray([1, 2])).protocol == "elements"
    x = weir.zeros(3)
    assert weir.explain(x).protocol == "none"
    weir.Device("cpu").synchronize()
    seen = np.from_dlpack(x)
    went = weir.explain(x)
    assert (went.protocol, went.went_out, went.copied, went.host_blocked) == ("DLPack", True, False, False)
    assert "went out by DLPack" in str(went)
    del seen


def test_x5_explain_says_that_the_host_waited() -> None:
    s = weir.Stream()
    x = weir.zeros(3, stream=s)
    gate = Gate()
    gate.hold(s)
    weir.fill(x, 1, stream=s)
    opens = opened_when_the_host_waits(x, gate)
    np.from_dlpack(x)
    opens.join()
    assert weir.explain(x).host_blocked


def test_x5_explain_says_that_an_operation_blocked_for_a_package_without_streams() -> None:
    x = weir.asarray(np.zeros(4))
    assert not weir.explain(x).host_blocked
    weir.fill(x, 1)
    said = weir.explain(x)
    assert (said.protocol, said.went_out, said.host_blocked) == ("buffer protocol", False, True)
    mine = weir.zeros(4)
    weir.synchronize()
    seen = np.from_dlpack(mine)
    assert not weir.explain(mine).host_blocked
    weir.fill(mine, 1)
    assert weir.explain(mine).host_blocked
    del seen
    alone = weir.asarray(np.zeros(4), exclusive=True)
    weir.fill(alone, 1)
    assert not weir.explain(alone).host_blocked


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_x5_explain_says_that_a_copy_went_out(device: str) -> None:
    x = weir.zeros(4, device=device)
    weir.Device(device).synchronize()
    capsule = x.__dlpack__(copy=True)
    said = weir.explain(x)
    assert (said.protocol, said.went_out, said.copied) == ("DLPack", True, True)
    del capsule
    y = weir.zeros(4, device="sim:0")
    y.__dlpack__(dl_device=(1, 0))
    said = weir.explain(y)
    assert (said.protocol, said.went_out, said.copied) == ("DLPack", True, True)


def test_x5_explain_says_how_numpy_got_an_array() -> None:
    x = weir.zeros(4)
    view = x.numpy()
    said = weir.explain(x)
    assert (said.protocol, said.went_out, said.copied) == ("buffer protocol", True, False)
    copied = x.numpy(copy=True)
    said = weir.explain(x)
    assert (said.protocol, said.went_out, said.copied) == ("elements", True, True)
    assert (view == copied).all()


def test_x5_memory_that_is_used_again_says_nothing_of_its_former_owner() -> None:
    for _ in range(20):
        x = weir.zeros(1000)
        assert weir.explain(x).protocol == "none"
        np.from_dlpack(x)
        del x
        gc.collect()


# On CUDA, by what reaches the driver.


class TorchEvent:
    """An event as torch has it."""

    def __init__(self, handle: int) -> None:
        self.cuda_event = handle


@pytest.mark.parametrize("as_event", [False, True])
def test_x7_streams_and_events_of_others(driver: CudaDriver, cuda: weir.Device, as_event: bool) -> None:
    x = weir.zeros(8, device=cuda)
    cuda.synchronize()
    theirs = driver.create_stream()
    held = driver.hold(theirs)
    told: Any = theirs
    if as_event:
        told = TorchEvent(driver.record_event(theirs))
    try:
        reading(x).synchronize()  # control: a reader does not wait for a stream that Weir does not know
        x.used_on(told)
        reader = reading(x)
        third = weir.Stream(cuda)
        weir.fill(weir.empty(4, stream=third), 1, stream=third)
        third.synchronize()
        assert not reader.done
    finally:
        driver.open(held)
    cuda.synchronize()


def test_x7_an_event_that_was_never_recorded(driver: CudaDriver, cuda: weir.Device) -> None:
    with pytest.raises(weir.ArgumentError, match="never recorded"):
        weir.zeros(2, device=cuda).used_on(TorchEvent(0))
    with pytest.raises(weir.ExchangeError, match="no events"):
        weir.zeros(2).used_on(TorchEvent(1))


def test_l5_an_exclusive_use_needs_no_quarantine(driver: CudaDriver, cuda: weir.Device) -> None:
    weir.safe_point()
    eventually(lambda: weir.memory.stats(cuda)["quarantined"] == 0)
    s = weir.Stream(cuda)
    for exclusive in (True, False):
        x = weir.empty(1 << 20, "uint8", device=cuda)
        capsule = x.__dlpack__(stream=s.handle, max_version=(1, 0))
        if exclusive:
            x.used_on(s, exclusive=True)
        del capsule, x
        gc.collect()
        if exclusive:
            cuda.synchronize()
            assert weir.memory.stats(cuda)["quarantined"] == 0
        else:
            eventually(lambda: weir.memory.stats(cuda)["quarantined"] >= 1 << 20)
    weir.safe_point()
