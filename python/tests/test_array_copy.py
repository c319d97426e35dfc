"""weir.copy and weir.fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import weir
from conftest import ARRAY_DEVICES
from weir.testing import Gate


@pytest.mark.parametrize("to", ARRAY_DEVICES)
@pytest.mark.parametrize("source", [*ARRAY_DEVICES, "numpy", "list", "number"])
def test_between_all_places(source: str, to: str) -> None:
    a = np.arange(6, dtype="int16").reshape(2, 3)
    x = weir.zeros((3, 2), "float32", device=to)
    src: Any = {"numpy": a, "list": a.tolist(), "number": np.int16(4)}.get(source)
    if src is None:
        src = weir.array(a, device=source)
    done = weir.copy(x.T[:, ::-1], src)
    done.wait()
    assert done.done
    expected = np.full((2, 3), 4) if source == "number" else a
    assert x.T[:, ::-1].tolist() == expected.tolist()


@pytest.mark.parametrize("source", ARRAY_DEVICES)
def test_to_an_array_of_numpy_is_over_when_it_returns(source: str) -> None:
    a = np.zeros((4, 6), "float64")
    x = weir.arange(6, device=source).reshape(2, 3)
    done = weir.copy(a[::-2, 1::2], x)
    assert done.done
    expected = np.zeros((4, 6))
    expected[::-2, 1::2] = np.arange(6).reshape(2, 3)
    assert a.tolist() == expected.tolist()
    weir.copy(a, np.float32(2))
    assert a.min() == a.max() == 2
    a.flags.writeable = False
    with pytest.raises(weir.ArgumentError, match="read-only"):
        weir.copy(a, x)
    weir.copy(np.zeros(0), weir.zeros(0, device=source))


def test_an_array_of_numpy_is_taken_as_it_is(queue_device: str) -> None:
    """Pageable sources: changed at once after the call, while the copy is held."""
    s = weir.Stream(queue_device)
    x = weir.zeros(1000, stream=s)
    a = np.ones(1000)
    with Gate() as gate:
        gate.hold(s)
        done = weir.copy(x, a, stream=s)
        a[:] = 7
        assert not done.done
    assert x.tolist() == [1] * 1000


def test_the_stream_is_that_of_the_device_that_is_not_the_cpu() -> None:
    far, near = weir.Stream("sim:0"), weir.Stream("cpu")
    x, y = weir.zeros(2, device="sim:0"), weir.ones(2)
    with far, near:
        with Gate() as gate:
            gate.hold(near)
            assert weir.copy(x, y).device == weir.Device("sim:0")
            weir.copy(y, x).wait()  # does not come after what is held on the CPU's stream
        with Gate() as gate:
            gate.hold(far)
            held = weir.copy(x, y)  # negative control: comes after what is held on this one
            assert not held.done
    assert weir.copy(x, y, stream=near).device == weir.Device("cpu")


def test_fill(array_device: str) -> None:
    x = weir.zeros((2, 3), "int32", device=array_device)
    weir.fill(x[:, 1:], 5).wait()
    weir.fill(x[0], np.float64(2.5), stream=weir.Stream(array_device)).wait()
    assert x.tolist() == [[2, 2, 2], [0, 5, 5]]
    for wrong, error in ((2**40, weir.ArgumentError), (1j, weir.ArgumentError), ([1, 2], weir.ArgumentTypeError)):
        with pytest.raises(error):
            weir.fill(x, wrong)


@pytest.mark.parametrize(
    ("dst", "src", "error"),
    [
        (lambda: weir.zeros(3), lambda: weir.zeros(4), weir.ArgumentError),
        (lambda: weir.zeros(3, int), lambda: weir.zeros(3), weir.ArgumentTypeError),
        (lambda: [1, 2, 3], lambda: weir.zeros(3), weir.ArgumentTypeError),
        (lambda: weir.zeros(3), lambda: "abc", weir.ArgumentTypeError),
        (lambda: None, lambda: None, weir.ArgumentTypeError),
        (lambda: np.zeros(3, "U1"), lambda: weir.zeros(3), weir.ArgumentTypeError),
        (lambda: np.zeros(3, ">f8"), lambda: weir.zeros(3), weir.ArgumentTypeError),
    ],
)
def test_wrong_operands(dst: Any, src: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        weir.copy(dst(), src())


def test_a_stream_of_neither_device_is_refused() -> None:
    with pytest.raises(weir.ArgumentError):
        weir.copy(weir.zeros(3, device="sim:0"), weir.zeros(3, device="sim:0"), stream=weir.Stream("sim:1"))
    s = weir.Stream()
    s.close()
    with pytest.raises(weir.StateError):
        weir.copy(weir.zeros(3), 1, stream=s)
