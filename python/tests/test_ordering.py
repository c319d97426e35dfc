"""Ordering modes: the innermost of array, stream, thread and process decides (rule O5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import weir
from weir.testing import Gate


@pytest.fixture(autouse=True)
def automatic_again() -> Iterator[None]:
    yield
    weir.set_ordering("auto")


class Race:
    """A write that is held back, and a copy of what it writes on another stream."""

    def __init__(self, device: weir.Device) -> None:
        self.load = weir.Stream(device, name="load")
        self.compute = weir.Stream(device, name="compute")
        self.x = weir.zeros(4, stream=self.load)
        self.y = weir.zeros(4, stream=self.compute)
        device.synchronize()

    def copied(self) -> float:
        """What the copy finds: 7 if it waits for the write, 0 if not."""
        weir.fill(self.x, 0, stream=self.load)
        self.load.synchronize()
        with Gate() as gate:
            gate.hold(self.load)
            weir.fill(self.x, 7, stream=self.load)
            weir.copy(self.y, self.x, stream=self.compute)
            done = self.compute.record()
            # What waits for the write waits for the gate; what does not is over without it.
            if "a gate" not in str(weir.explain(done)):
                done.wait()
        self.load.synchronize()
        self.compute.synchronize()
        return float(self.y[0].item())


def set_part(x: weir.Array) -> weir.Array:
    y = weir.ones(4, device=x.device)
    y[1:3] = x[1:3]
    return y


def add_in_place(x: weir.Array) -> weir.Array:
    y = weir.ones(4, device=x.device)
    y += x
    return y


READERS: dict[str, Callable[[weir.Array], weir.Array]] = {
    "plus": lambda x: x + 1,
    "in place": add_in_place,
    "assignment": set_part,
    "reduction": lambda x: x.sum(),
    "conversion": lambda x: x.astype("float32"),
    "selection": lambda x: weir.where(x > 3, x, 2),
    "copy": lambda x: x.copy(),
    "transform": lambda x: weir.fft.fft(x),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_o1_what_reads_comes_after_what_writes(device: weir.Device, reader: Callable[[weir.Array], weir.Array]) -> None:
    """On another stream, which is held. The control leaves the order to the program, which has none."""
    right, wrong = (reader(weir.full(4, float(value), device=device)).tolist() for value in (7, 0))
    assert right != wrong
    for mode in ("auto", "manual"):
        load, compute = weir.Stream(device), weir.Stream(device)
        x = weir.zeros(4, stream=load)
        device.synchronize()
        with Gate() as gate, weir.ordering(mode):
            gate.hold(load)
            weir.fill(x, 7, stream=load)
            with compute:
                found = reader(x)
            if mode == "manual":
                compute.synchronize()  # which the gate does not hold up
            else:
                assert not compute.done
        device.synchronize()
        assert found.tolist() == (right if mode == "auto" else wrong)


def test_o5_weir_orders_by_default(device: weir.Device) -> None:
    assert Race(device).copied() == 7


def test_o5_manual_in_a_scope_of_the_thread(device: weir.Device) -> None:
    race = Race(device)
    with weir.ordering("manual"):
        assert race.copied() == 0
        with weir.ordering("auto"):
            assert race.copied() == 7
        assert Race(device).copied() == 0
    assert race.copied() == 7, "and back at once"


def test_o5_the_scope_is_not_that_of_other_threads(device: weir.Device) -> None:
    found: list[float] = []
    with weir.ordering("manual"):
        thread = threading.Thread(target=lambda: found.append(Race(device).copied()))
        thread.start()
        thread.join()
    assert found == [7]


def test_o5_manual_for_a_stream_and_for_an_array(device: weir.Device) -> None:
    race = Race(device)
    with weir.ordering("manual", stream=race.compute):
        assert race.copied() == 0
        with weir.ordering("auto", array=race.x), weir.ordering("auto", array=race.y):
            assert race.copied() == 7, "the array is inside of the stream"
    assert race.copied() == 7
    with weir.ordering("manual", array=race.x):
        assert race.copied() == 0
    assert race.copied() == 7


def test_o5_the_mode_of_the_process(device: weir.Device) -> None:
    race = Race(device)
    weir.set_ordering("manual")
    assert race.copied() == 0
    with weir.ordering("auto"):
        assert race.copied() == 7


def test_scopes_restore_what_was_there_also_after_exceptions(device: weir.Device) -> None:
    race = Race(device)
    with weir.ordering("manual", stream=race.compute):
        with pytest.raises(KeyError), weir.ordering("auto", stream=race.compute):
            raise KeyError
        assert race.copied() == 0


def test_misuse_of_scopes() -> None:
    outer, inner = weir.ordering("manual"), weir.ordering("auto")
    with pytest.raises(weir.StateError, match="is not entered"):
        outer.__exit__(None, None, None)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(weir.StateError, match="entered already"):
        inner.__enter__()
    with pytest.raises(weir.StateError, match="not the innermost one"):
        outer.__exit__(None, None, None)
    caught: list[BaseException] = []

    def end() -> None:
        try:
            inner.__exit__(None, None, None)
        except weir.StateError as error:
            caught.append(error)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert "not the innermost one of its context" in str(caught[0])
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)


def test_a_scope_that_is_never_left_ends_with_its_thread() -> None:
    def leave_open() -> None:
        weir.ordering("manual").__enter__()

    thread = threading.Thread(target=leave_open)
    thread.start()
    thread.join()
    assert Race(weir.Device("cpu")).copied() == 7


def test_wrong_arguments() -> None:
    with pytest.raises(weir.ArgumentError, match='"automatic" is no mode of ordering: pass "auto"'):
        weir.ordering("automatic")  # type: ignore[arg-type]
    with pytest.raises(weir.ArgumentTypeError, match="3 is no mode"):
        weir.set_ordering(3)  # type: ignore[arg-type]
    with pytest.raises(weir.ArgumentTypeError, match=r"pass a weir\.Array"):
        weir.ordering("auto", array=[1, 2])
    with pytest.raises(weir.ArgumentTypeError):
        weir.ordering("auto", stream=[1, 2])


def test_stats_count() -> None:
    counts = weir.stats()
    assert sorted(counts) == ["driver_events", "late_waits", "operations", "waits_elided", "waits_issued"]
    assert all(isinstance(count, int) and count >= 0 for count in counts.values())


def counted(since: dict[str, int]) -> tuple[int, ...]:
    now = weir.stats()
    return tuple(now[each] - since[each] for each in ("operations", "waits_issued", "waits_elided"))


def test_stats_count_operations_and_waits() -> None:
    load, use, gate = weir.Stream(), weir.Stream(), Gate()
    x, y = weir.zeros(4, stream=load), weir.zeros(4, stream=use)
    weir.synchronize()
    gate.hold(load)
    start = weir.stats()
    weir.fill(x, 1, stream=load)
    weir.fill(x, 2, stream=load)
    assert counted(start) == (2, 0, 0), "one stream needs no waits"
    weir.copy(y, x, stream=use)
    assert counted(start) == (3, 1, 0)
    weir.copy(y, x, stream=use)
    assert counted(start) == (4, 1, 1), "the stream is ordered after the write already"
    with weir.check():
        weir.copy(y, x, stream=use)  # what observers see takes the slow path
        assert counted(start) == (5, 1, 2)
    gate.open()
    weir.synchronize()
    del load, use
    assert counted(start) == (5, 1, 2), "streams that are gone still count"
