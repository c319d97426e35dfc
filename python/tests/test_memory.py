"""Statistics, limits and resources (L6)."""

from __future__ import annotations

import gc
import json
import sys
import threading
from typing import Any, Literal

import numpy as np
import pytest
import weir
from eventually import eventually
from weir import memory
from weir.testing import Gate


def test_statistics_count_what_lives_and_what_is_pending(device: weir.Device) -> None:
    s = weir.Stream(device)
    before = memory.stats(device)
    assert set(before) == {"live", "cached", "pending", "quarantined", "peak", "limit", "over_waited"}
    with s:
        x = weir.zeros(1 << 16, "uint8")
    s.synchronize()
    assert memory.stats(device)["live"] >= before["live"] + (1 << 16)
    with Gate() as gate:
        gate.hold(s)
        weir.host_task(lambda values: None, x, stream=s)
        pending = memory.stats(device)["pending"]
        weir.fill(x, 1, stream=s)
        del x
        gc.collect()
        assert memory.stats(device)["pending"] >= pending
    s.synchronize()
    memory.trim(device)


@pytest.mark.parametrize(("where", "kind"), [("cpu", "pinned"), ("cuda:0", "managed")])
def test_pinned_and_managed_memory_have_statistics(
    cuda: weir.Device, where: str, kind: Literal["pinned", "managed"]
) -> None:
    weir.synchronize(where)
    before, own = memory.stats(where, memory=kind), memory.stats(where)
    assert set(before) == set(own)
    x = weir.zeros(1 << 20, "uint8", device=where, memory=kind)
    assert memory.stats(where, memory=kind)["live"] >= before["live"] + (1 << 20)
    assert memory.stats(where)["live"] == own["live"], "the device's own pool is another one"
    weir.synchronize(where)
    del x
    eventually(lambda: memory.stats(where, memory=kind)["live"] == before["live"])


@pytest.mark.parametrize(
    ("where", "kind", "error"),
    [
        ("cpu", "managed", weir.ArgumentError),
        ("sim:0", "pinned", weir.ArgumentError),
        ("cpu", "shared", weir.ArgumentError),
        ("cpu", 1, weir.ArgumentTypeError),
    ],
)
def test_statistics_of_a_pool_that_the_device_has_not_are_refused(
    where: str, kind: Any, error: type[weir.Error]
) -> None:
    with pytest.raises(error, match='pass "pinned"'):
        memory.stats(where, memory=kind)


def test_a_limit_of_the_pool_holds() -> None:
    before = memory.stats("sim:5")["limit"]
    memory.limit("sim:5", 1 << 20)
    assert memory.stats("sim:5")["limit"] == 1 << 20
    with pytest.raises(weir.OutOfMemory, match="sim:5"):
        weir.empty(1 << 22, "uint8", device="sim:5")
    with pytest.raises(MemoryError):
        weir.empty(1 << 22, "uint8", device="sim:5")
    memory.limit("sim:5", before)
    for wrong in (-1, "1", 1.5):
        with pytest.raises(weir.Error, match="pass a number of bytes"):
            memory.limit("sim:5", wrong)  # type: ignore[arg-type]


def test_limiting_counts_what_the_scope_allocates() -> None:
    counted = memory.counting()
    limited = memory.limiting(1000, counted)
    with memory.use(limited):
        x = weir.empty(500, "uint8")
        with pytest.raises(weir.OutOfMemory, match="1000"):
            weir.empty(501, "uint8")
        del x
        y = weir.empty(1000, "uint8")
    assert counted.counts()["live"] == {"count": 1, "bytes": 1000}
    weir.empty(2000, "uint8")  # outside of the scope there is no limit
    del y
    assert counted.counts()["live"] == {"count": 0, "bytes": 0}
    assert counted.counts()["total"]["count"] == 2


def test_scopes_nest_and_name_devices() -> None:
    outer, inner = memory.counting(), memory.counting()
    with memory.use(outer):
        with memory.use(inner, "sim:0"):
            weir.empty(3)
            weir.empty(3, device="sim:0")
            with memory.use(None):
                weir.empty(3)
        weir.empty(3, device="sim:0")
    weir.empty(3)
    assert outer.counts()["total"]["count"] == 2
    assert inner.counts()["total"]["count"] == 1


def test_scopes_are_of_their_thread() -> None:
    counted = memory.counting()
    with memory.use(counted):
        thread = threading.Thread(target=weir.empty, args=(3,))
        thread.start()
        thread.join()
    assert counted.counts()["total"]["count"] == 0


def test_misuse_of_a_scope_is_refused_and_changes_nothing() -> None:
    counted = memory.counting()
    scope, inside = memory.use(counted), memory.use(None)
    with pytest.raises(weir.StateError, match="not entered"):
        scope.__exit__(None, None, None)
    with scope:
        with pytest.raises(weir.StateError, match="in use"):
            scope.__enter__()
        with inside, pytest.raises(weir.StateError, match="innermost first"):
            scope.__exit__(None, None, None)
        errors: list[Exception] = []

        def leave() -> None:
            try:
                scope.__exit__(None, None, None)
            except weir.StateError as error:
                errors.append(error)

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        assert len(errors) == 1
        weir.empty(3)
    assert counted.counts()["total"]["count"] == 1


def test_logging_tells_of_each_allocation_and_drop_in_order() -> None:
    lines: list[str] = []
    with memory.use(memory.logging(lines.append)):
        x = weir.empty(10, "uint8")
        y = weir.empty(20, "uint8")
        del x
        del y
    told = [json.loads(line) for line in lines]
    assert [(one["event"], one["bytes"]) for one in told] == [
        ("allocate", 10),
        ("allocate", 20),
        ("drop", 10),
        ("drop", 20),
    ]
    assert told[0]["file"] == __file__


def test_a_sink_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_type))

    def broken(line: str) -> None:
        raise ValueError(line)

    with memory.use(memory.logging(broken)):
        x = weir.ones(3)
    assert x.numpy(copy=True).tolist() == [1, 1, 1]
    del x
    gc.collect()
    assert told == [ValueError] * 2
    with pytest.raises(weir.ArgumentTypeError, match="logging"):
        memory.logging(3)  # type: ignore[arg-type]


def test_failing_fails_where_it_is_told_to() -> None:
    failing = memory.failing(at=2)
    with memory.use(failing):
        weir.empty(3)
        with pytest.raises(weir.OutOfMemory):
            weir.empty(3)
        weir.empty(3)
    assert (failing.asked, failing.failed) == (3, 1)
    with pytest.raises(weir.ArgumentError, match="probability"):
        memory.failing(probability=2.0)


def test_an_allocation_that_fails_leaves_a_program_that_goes_on(any_device: weir.Device) -> None:
    for at in range(1, 4):
        with weir.Stream(any_device), memory.use(memory.failing(at=at)):
            try:
                x = weir.ones(4)
                y = x + x
                assert y.numpy(copy=True).tolist() == [2, 2, 2, 2]
            except weir.OutOfMemory:
                pass
    assert (weir.ones(4) + 1).numpy().tolist() == [2, 2, 2, 2]


def test_the_drivers_own_pool_gives_memory(any_device: weir.Device) -> None:
    counted = memory.counting(memory.driver_pool())
    with weir.Stream(any_device), memory.use(counted):
        assert weir.ones(4).numpy(copy=True).tolist() == [1, 1, 1, 1]
    assert counted.counts()["total"]["count"] >= 1


@pytest.mark.parametrize("control", [False, True], ids=["weir", "control"])
def test_c11_memory_dropped_while_in_use_is_not_handed_on_too_early(control: bool) -> None:
    """The control frees on the allocating stream, as others do, and corrupts what the user's stream still works on."""
    resource = memory.allocating_stream() if control else None
    user = weir.Stream(name="user")
    z = weir.full(1 << 12, 7.0)
    with weir.Stream(name="allocating") as allocating, memory.use(resource):
        x = weir.zeros(1 << 12)
        allocating.synchronize()
        with Gate() as gate:
            gate.hold(user)
            weir.copy(z, x, stream=user)
            del x
            gc.collect()
            y = weir.ones(1 << 12)
            allocating.synchronize()
        user.synchronize()
        assert y.numpy(copy=True).sum() == 1 << 12
    assert z.numpy(copy=True).sum() == (4096 if control else 0)


def test_l5_captures_are_declared_and_a_safe_point_returns() -> None:
    weir.captures("none")
    weir.safe_point()
    weir.captures("unknown")
    with pytest.raises(weir.ArgumentError, match="unknown"):
        weir.captures("maybe")  # type: ignore[arg-type]
    with pytest.raises(weir.ArgumentTypeError, match="none"):
        weir.captures(None)  # type: ignore[arg-type]


def test_poisoning_makes_a_read_after_a_free_compute_nan(any_device: weir.Device) -> None:
    stream = weir.Stream(any_device)
    count = 1 << 19
    before = memory.stats(any_device)
    any_device.synchronize()
    memory.trim(any_device)
    with stream, memory.use(memory.poisoning(memory.counting())):
        freed = weir.full(count, 7.0, device=any_device)
        stream.synchronize()
        del freed
        any_device.synchronize()
        seen = [weir.empty(count, device=any_device) for _ in range(8)]  # one of them is in that memory
        assert any(np.isnan(one.numpy()).all() for one in seen)
    assert memory.stats(any_device)["limit"] == before["limit"]
