"""The steps of one call are ordered in every mode, and the stream of the call is behind all of them (rule O5)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
import weir
from weir.testing import Gate

N = 64
T = TypeVar("T")
Mode: TypeAlias = Literal["auto", "manual"]
Numbers: TypeAlias = npt.NDArray[np.complex128]
Across: TypeAlias = Callable[[weir.Array, str], weir.Array]
ToNumPy: TypeAlias = Callable[[weir.Array, str], npt.NDArray[np.float32]]
NUMBERS = np.arange(N, dtype="complex128")


def settled(count: int, dtype: str, device: str) -> weir.Array:
    """An array that all streams know."""
    s = weir.Stream(device)
    made = weir.zeros(count, dtype, stream=s)
    s.synchronize()
    return made


def strided(device: str) -> weir.Array:
    """Every second element of such an array."""
    return settled(2 * N, "float32", device)[::2]


def in_time(call: Callable[[], T], gate: Gate) -> T:
    """What the call gives, on a thread of its own. Where it waits for the gate, it fails, and the gate opens."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join(20)
    was_stuck = thread.is_alive()
    gate.open()
    thread.join()
    assert not was_stuck, "the call waits for a stream that it was not given"
    assert results, "the call failed"
    return results[0]


# From a strided array on the one device to an array on the other, on the current stream of the simulated one.


def by_to(x: weir.Array, to: str) -> weir.Array:
    return x.to(to)


def by_array(x: weir.Array, to: str) -> weir.Array:
    return weir.array(x, device=to)


def by_array_that_converts(x: weir.Array, to: str) -> weir.Array:
    return weir.array(x, "int64", device=to)


def by_assignment(x: weir.Array, to: str) -> weir.Array:
    y = settled(N, "float64", to)
    y[...] = x
    return y


def by_assignment_to_a_view(x: weir.Array, to: str) -> weir.Array:
    y = strided(to)
    y[...] = x
    return y


def by_copy_to_numpy(x: weir.Array, _: str) -> npt.NDArray[np.float32]:
    y = np.zeros((N, 2), "float32")
    weir.copy(y[:, 0], x, stream=weir.current_stream("sim:0"))
    return y[:, 0]


ACROSS = [by_to, by_array, by_array_that_converts, by_assignment, by_assignment_to_a_view]


def stream_of_call(call: Across | ToNumPy, target: str) -> weir.Stream:
    """A stream of the device whose current stream the call uses."""
    makes_there = call in (by_array, by_array_that_converts)
    return weir.Stream(target if makes_there else "sim:0", name="call")


@pytest.mark.parametrize("mode", ["auto", "manual"])
@pytest.mark.parametrize(("source", "target"), [("sim:0", "cpu"), ("cpu", "sim:0")])
@pytest.mark.parametrize("call", ACROSS)
def test_o5_what_the_program_ordered_reaches_every_step(call: Across, source: str, target: str, mode: Mode) -> None:
    x = strided(source)
    fills = weir.Stream(source, name="fills")
    s = stream_of_call(call, target)
    others = [weir.current_stream("cpu"), weir.current_stream("sim:0")]
    with Gate() as late:
        late.hold(fills)

        def program() -> weir.Array:
            with weir.ordering(mode), s:
                weir.fill(x, 7, stream=fills)
                s.wait(fills)
                y = call(x, target)
                for each in others:  # a step there that nothing orders has run then, before there are elements
                    each.synchronize()
                return y

        y = in_time(program, late)  # and the gate opens
        s.synchronize()
        assert y.tolist() == [7] * N


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o5_a_strided_destination_of_numpy_is_written_behind_what_the_program_ordered(mode: Mode) -> None:
    x = strided("sim:0")
    fills = weir.Stream("sim:0", name="fills")
    s = weir.Stream("sim:0", name="call")
    with Gate() as late, Gate() as current:
        late.hold(fills)
        current.hold(weir.current_stream("cpu"))  # where nothing of the call may be
        has_begun = threading.Event()

        def program() -> npt.NDArray[np.float32]:
            with weir.ordering(mode), s:
                weir.fill(x, 7, stream=fills)
                s.wait(fills)
                has_begun.set()
                return by_copy_to_numpy(x, "cpu")

        threading.Thread(target=lambda: (has_begun.wait(), late.open())).start()
        assert in_time(program, current).tolist() == [7] * N


@pytest.mark.parametrize("call", [*ACROSS, by_copy_to_numpy])
def test_o5_no_step_is_the_programs_to_order(call: Across | ToNumPy) -> None:
    x = strided("sim:0")
    fills = weir.Stream("sim:0", name="fills")
    s = stream_of_call(call, "cpu")
    with weir.ordering("manual"), weir.check() as report, s:
        weir.fill(x, 7, stream=fills)
        s.wait(fills)
        y = call(x, "cpu")
        s.synchronize()
        assert (y.numpy() if isinstance(y, weir.Array) else y).tolist() == [7] * N
    assert len(report) == 0, report


def test_o5_control_a_call_that_the_program_did_not_order_races() -> None:
    x = strided("sim:0")
    fills = weir.Stream("sim:0", name="fills")
    s = weir.Stream("sim:0", name="call")
    with weir.ordering("manual"), weir.check() as report, s:
        weir.fill(x, 7, stream=fills)
        y = x.to("cpu")
        s.synchronize()
        fills.synchronize()
    assert y.shape == x.shape
    assert [race.kind for race in report.races] == ["RAW"]


def fft_elsewhere(numbers: Numbers) -> Numbers:
    return weir.fft.fft(numbers, execution="sim")


def fft_on_a_stream(numbers: Numbers) -> Numbers:
    return weir.fft.fft(numbers, stream=weir.Stream("cpu"))


def plan_elsewhere(numbers: Numbers) -> Numbers:
    with weir.fft.FFT(numbers, execution="sim") as f:
        f.plan()
        return f.execute()


def plan_on_two_streams(numbers: Numbers) -> Numbers:
    with weir.fft.FFT(numbers, stream=weir.Stream("cpu")) as f:
        f.plan()
        f.execute(stream=weir.Stream("cpu"))
        f.reset_operand(numbers, stream=weir.Stream("cpu"))
        return f.execute(stream=weir.Stream("cpu"))


@pytest.mark.parametrize("mode", ["auto", "manual"])
@pytest.mark.parametrize("call", [fft_elsewhere, fft_on_a_stream, plan_elsewhere, plan_on_two_streams])
def test_o5_operands_of_numpy_are_there_when_the_call_begins(call: Callable[[Numbers], Numbers], mode: Mode) -> None:
    with Gate() as held:
        held.hold(weir.current_stream("cpu"))  # where nothing of the call may be

        def program() -> Numbers:
            with weir.ordering(mode):
                return call(NUMBERS)

        np.testing.assert_allclose(in_time(program, held), np.fft.fft(NUMBERS), rtol=1e-12, atol=1e-9)


def test_o5_operands_of_numpy_are_no_race() -> None:
    with weir.check(assume="manual") as report:
        for call in (fft_elsewhere, fft_on_a_stream, plan_elsewhere, plan_on_two_streams):
            call(NUMBERS)
    assert len(report) == 0, report


def test_e4_execute_takes_the_elements_of_numpy_as_they_are_then() -> None:
    numbers = NUMBERS.copy()
    modes: list[Mode] = ["auto", "manual"]
    for mode in modes:
        with weir.ordering(mode), weir.fft.FFT(numbers, execution="sim") as f:
            f.plan()
            numbers += 1
            np.testing.assert_allclose(f.execute(), np.fft.fft(numbers), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("value", [[7.0] * N, np.full(N, 7.0)], ids=["list", "numpy"])
@pytest.mark.parametrize("on", ["cpu", "sim:0"])
def test_o5_assigned_elements_need_no_stream_but_the_calls(
    value: list[float] | npt.NDArray[np.float64], on: str
) -> None:
    y = settled(2 * N, "float64", "sim:0")[::2]
    s = weir.Stream(on)
    with Gate() as held:
        held.hold(weir.current_stream("sim:0" if on == "cpu" else "cpu"))

        def program() -> list[float]:
            with weir.ordering("manual"):
                weir.copy(y, value, stream=s)
                s.synchronize()
                return y.tolist()

        assert in_time(program, held) == [7] * N
