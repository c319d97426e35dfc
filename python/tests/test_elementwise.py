"""Calls of element-wise kernels: operands, results, order and errors (rules K1 to K4), beside NumPy."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir

N = 1000


@pytest.fixture
def axpy() -> weir.ElementwiseKernel:
    return weir.elementwise("float x, float a", "float y", "y = a * x + 1", name="axpy")


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_a_new_array(any_device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    x = weir.arange(N, dtype="float32", device=any_device)
    y = axpy(x, 2)
    assert isinstance(y, weir.Array)
    assert y.device == any_device
    assert str(y.dtype) == "float32"
    np.testing.assert_array_equal(y.numpy(), np.arange(N, dtype="float32") * 2 + 1)


def test_outputs_that_there_are_are_returned(any_device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    x = weir.ones(N, "float32", device=any_device)
    y = weir.zeros(N, "float32", device=any_device)
    assert axpy(x, 4, out=y) is y
    assert y.numpy()[7] == 5
    event = axpy.launch(x, 5, out=y)
    assert isinstance(event, weir.Event)
    event.synchronize()
    assert y.numpy()[7] == 6


def test_several_outputs(any_device: weir.Device) -> None:
    kernel = weir.elementwise("T x", "T low, inout T total", "low = x - 1; total += x")
    x = weir.arange(5, dtype="int32", device=any_device)
    total = weir.full(5, 10, "int32", device=any_device)
    low, same = kernel(x, out=(None, total))
    assert same is total
    assert low.tolist() == [-1, 0, 1, 2, 3]
    assert total.tolist() == [10, 11, 12, 13, 14]
    both = weir.elementwise("T x", "T a, float64 b", "a = 2 * x; b = 0.5 * x")(x)
    assert isinstance(both, tuple)
    assert [str(one.dtype) for one in both] == ["int32", "float64"]
    assert both[1].tolist() == [0, 0.5, 1, 1.5, 2]


NUMBERS = [2, 2.5, True, np.float32(2.5), np.int64(3), np.float64(-1), np.bool_(True)]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_are_converted(number: Any, axpy: weir.ElementwiseKernel) -> None:
    assert axpy(weir.ones(3, "float32"), number).tolist() == [float(number) + 1] * 3


def test_numbers_take_the_type_of_arrays() -> None:
    kernel = weir.elementwise("T x, T a", "T y", "y = x + a")
    assert str(kernel(weir.ones(3, "float32"), 2).dtype) == "float32"
    assert str(kernel(2, 3).dtype) == "int64"
    assert kernel(2, 3.5).item() == 5.5
    assert kernel(1j, 2).item() == 2 + 1j
    assert kernel(weir.ones(2, "complex64"), 1j).tolist() == [1 + 1j] * 2


def random_view(random: np.random.Generator, x: np.ndarray[Any, Any], device: weir.Device) -> tuple[Any, Any]:
    """The same view of an array of NumPy's and of its copy on the device."""
    mine: Any = weir.array(x, device=device)
    theirs: Any = x
    if random.integers(2):
        index = tuple(
            slice(None, None, int(random.choice([1, 1, 2, -1, -2]))) if extent > 1 else slice(None)
            for extent in x.shape
        )
        mine, theirs = mine[index], theirs[index]
    if random.integers(2):
        mine, theirs = mine.T, theirs.T
    if theirs.ndim and random.integers(3) == 0:
        axis = int(random.integers(theirs.ndim))
        index = tuple(slice(0, 1) if k == axis else slice(None) for k in range(theirs.ndim))
        mine, theirs = mine[index], theirs[index]
    return mine, theirs


@pytest.mark.parametrize("seed", range(60))
def test_any_shapes_and_strides(any_device: weir.Device, seed: int) -> None:
    random = np.random.default_rng(seed)
    kernel = weir.elementwise("T a, T b, T c", "T y, int64 at", "y = a * b - c; at = i")
    dtype = random.choice(["float64", "int32", "float32", "uint8", "int64"])
    shape = tuple(int(extent) for extent in random.integers(1, 7, size=int(random.integers(0, 5))))
    mine, theirs = [], []
    for _ in range(3):
        kept = shape[int(random.integers(len(shape) + 1)) :]
        values = random.integers(0, 100, size=kept).astype(dtype)
        one, other = random_view(random, values, any_device)
        mine.append(one)
        theirs.append(other)
    try:
        result = np.broadcast_shapes(*(one.shape for one in theirs))
    except ValueError:
        assert "broadcast" in message(weir.ArgumentError, lambda: kernel(*mine))
        return
    with np.errstate(all="ignore"):
        expected = (theirs[0] * theirs[1] - theirs[2]).astype(dtype)
    y, at = kernel(*mine)
    np.testing.assert_array_equal(y.numpy(), np.broadcast_to(expected, result))
    np.testing.assert_array_equal(at.numpy(), np.arange(int(np.prod(result))).reshape(result))


@pytest.mark.parametrize("seed", range(30))
def test_outputs_with_any_strides_that_overlap_inputs(any_device: weir.Device, seed: int) -> None:
    random = np.random.default_rng(seed)
    kernel = weir.elementwise("T a, T b", "inout T y", "y = y * 3 + a - b")
    values = random.integers(0, 1000, size=(7, 8))
    mine, theirs = weir.array(values, device=any_device), values.copy()

    def part() -> tuple[slice, slice]:
        rows, columns = int(random.integers(2)), int(random.integers(3))
        steps = [int(step) for step in random.choice([1, -1], size=2)]
        first = slice(rows, rows + 6) if steps[0] == 1 else slice(rows + 5, rows - 1 if rows else None, -1)
        second = (
            slice(columns, columns + 6) if steps[1] == 1 else slice(columns + 5, columns - 1 if columns else None, -1)
        )
        return first, second

    a, b, y = part(), part(), part()
    expected = theirs[y] * 3 + theirs[a] - theirs[b]
    kernel(mine[a], mine[b], out=mine[y])
    theirs[y] = expected
    np.testing.assert_array_equal(mine.numpy(), theirs)


def test_many_elements_run_on_several_threads() -> None:
    x = np.arange(1_000_003, dtype="int64")
    y = weir.elementwise("T x", "T y", "y = x * 3 + i")(weir.array(x))
    np.testing.assert_array_equal(y.numpy(), x * 4)
    grid = np.arange(600_000, dtype="int32").reshape(300, 50, 40)
    z = weir.elementwise("T x, T row", "T y", "y = x + row")(
        weir.array(grid)[:, ::-1, :30], weir.arange(30, dtype="int32")
    )
    np.testing.assert_array_equal(z.numpy(), grid[:, ::-1, :30] + np.arange(30, dtype="int32"))


def test_raw_inputs_are_indexed(any_device: weir.Device) -> None:
    lookup = weir.elementwise("raw T table, int32 at", "T y", "y = table[at] + table.size()")
    table = weir.array(np.arange(12.0).reshape(3, 4), device=any_device).T
    at = np.array([[5, 0], [11, 1]], "int32")
    expected = np.arange(12.0).reshape(3, 4).T.ravel()[at] + 12
    assert (lookup(table, weir.array(at, device=any_device)).numpy() == expected).all()
    flip = weir.elementwise("raw float x", "float y", "y = x[n - 1 - i]")
    x = weir.array(np.arange(5, dtype="float32"), device=any_device)
    flip(x, out=x)
    assert x.tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(weir.ArgumentError, match="pass arrays for the outputs"):
        flip(x)
    with pytest.raises(weir.ArgumentTypeError, match="pass an array, which the body indexes"):
        flip(2, out=x)


def test_arrays_of_numpy_are_taken_as_they_are_at_the_call(axpy: weir.ElementwiseKernel) -> None:
    x = np.ones(N, "float32")
    s = weir.Stream()
    gate = weir.testing.Gate()
    gate.hold(s)
    y = axpy(x, 2, stream=s)
    x[:] = 100
    gate.open()
    assert y.numpy()[5] == 3


def test_an_output_of_numpy_is_complete_when_the_call_returns(axpy: weir.ElementwiseKernel) -> None:
    out = np.zeros(N, "float32")
    assert axpy(weir.ones(N, "float32"), 2, out=out) is out
    assert (out == 3).all()


def test_arrays_of_torch(axpy: weir.ElementwiseKernel) -> None:
    torch = pytest.importorskip("torch")
    assert axpy(torch.ones(5), 2).tolist() == [3] * 5
    out = torch.zeros(5)
    assert axpy(torch.ones(5), 2, out=out) is out
    weir.Device("cpu").synchronize()
    assert out.tolist() == [3] * 5


# Order.


def test_it_waits_for_its_operands_and_the_host_does_not(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s1)
    axpy(x, 2, stream=s2).numpy()  # compiled by now
    gate = weir.testing.Gate()
    gate.hold(s1)
    weir.fill(x, 5, stream=s1)
    y = axpy(x, 2, stream=s2)
    weir.fill(x, 7, stream=s1)
    assert not y.ready
    gate.open()
    assert y.numpy()[0] == 11
    assert x.numpy()[0] == 7


def test_control_without_ordering_it_reads_too_early(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s1)
    axpy(x, 2, stream=s2).numpy()
    with weir.ordering("manual"):
        gate = weir.testing.Gate()
        gate.hold(s1)
        weir.fill(x, 5, stream=s1)
        y = axpy(x, 2, stream=s2)
        s2.synchronize()
        assert y.numpy()[0] == 3
        gate.open()
        device.synchronize()


def test_check_names_the_kernel(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s1)
    device.synchronize()
    with weir.check(assume="manual") as report:
        weir.fill(x, 5, stream=s1)
        axpy(x, 2, stream=s2)
    assert [(race.kind, race.second.label) for race in report.races] == [("RAW", "axpy")]


def test_after(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s2)
    axpy(x, 2, stream=s2).numpy()
    gate = weir.testing.Gate()
    gate.hold(s1)
    held = s1.record()
    y = axpy(x, 2, stream=s2, after=held)
    event = axpy.launch(x, 2, out=weir.empty(N, "float32", stream=s2), stream=s2, after=[held])
    assert not y.ready
    assert not event.done
    gate.open()
    assert y.numpy()[0] == 3


def test_a_launch_may_wait(axpy: weir.ElementwiseKernel) -> None:
    x, y = weir.ones(N, "float32"), weir.empty(N, "float32")
    assert axpy.launch(x, 2, out=y, wait=True).done
    failing = weir.Stream()

    def fails(x: Any) -> None:
        raise ValueError("no")

    weir.host_task(fails, weir.Out(x), stream=failing)
    with pytest.raises(weir.OperationError, match="fails"):
        axpy.launch(x, 2, out=y, wait=True)
    with pytest.raises(weir.ArgumentTypeError, match="wait"):
        axpy.launch(x, 2, out=y, wait=2)  # type: ignore[arg-type]


def test_the_current_stream(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s = weir.Stream(device)
    x = weir.ones(N, "float32", stream=s)
    axpy(x, 2).numpy()
    gate = weir.testing.Gate()
    gate.hold(s)
    with s:
        y = axpy(x, 2)
    assert not y.ready
    gate.open()
    assert y.numpy()[0] == 3


def test_operands_and_the_kernel_may_go(device: weir.Device) -> None:
    s = weir.Stream(device)
    kernel = weir.elementwise("float x, float a", "float y", "y = a * x + 1")
    kernel(weir.ones(N, "float32", stream=s), 1, stream=s).numpy()
    gate = weir.testing.Gate()
    gate.hold(s)
    y = kernel(weir.full(N, 4, "float32", stream=s), 2, stream=s)
    del kernel
    gc.collect()
    noise = weir.full(N, 77, "float32", stream=s)
    gate.open()
    assert y.numpy()[9] == 9
    assert noise.numpy()[9] == 77


# Errors.


def test_wrong_operands_are_refused(axpy: weir.ElementwiseKernel) -> None:
    x = weir.ones(3, "float32")

    def wrong(*inputs: Any, **more: Any) -> str:
        return message(weir.ArgumentError, lambda: axpy(*inputs, **more))

    def wrong_type(*inputs: Any, **more: Any) -> str:
        return message(weir.ArgumentTypeError, lambda: axpy(*inputs, **more))

    assert "it has 2 inputs, and got 1" in wrong(x)
    assert "does not broadcast" in wrong(x, weir.ones(4, "float32"))
    assert "the results have the shape (3,), the arrays for them (4,)" in wrong(x, 1, out=weir.ones(4, "float32"))
    assert "got an array of float64: convert it with x.astype(dtype)" in wrong_type(weir.ones(3), 1)
    assert "got the number (0+1j)" in wrong_type(x, 1j)
    assert "an operand is a list: make an array of it" in wrong_type(x, [1, 2, 3])
    assert "pass an array for each output" in wrong_type(x, 1, out=3)
    assert "it has 1 outputs, and got arrays for 2" in wrong(x, 1, out=(x, x))
    assert "pass out=" in message(weir.ArgumentError, lambda: axpy.launch(x, 1, out=None))
    assert "pass the array itself" in wrong_type(weir.In(x), 1)
    assert "pass the array itself" in wrong_type(x, 1, out=weir.Out(x))
    with pytest.raises(weir.Error, match=r"sim:0"):
        axpy(x, weir.ones(3, "float32", device="sim:0"))
    with pytest.raises(weir.ArgumentTypeError):
        axpy(x, "text")
    with pytest.raises(weir.ArgumentTypeError, match="inputs is 3"):
        weir.elementwise(3, "T y", "y = 1")  # type: ignore[arg-type]
    large = message(weir.ArgumentError, lambda: weir.elementwise("int64 x", "int64 y", "y = x")(-(2**63) - 1))
    assert "out of range: pass one of int64" in large
    assert "300" in message(weir.ArgumentError, lambda: weir.elementwise("uint8 x", "uint8 y", "y = x")(300))


def test_words() -> None:
    kernel = weir.elementwise("in float32 x, T a", "inout T y, bool z", "z = x > a; y += a", name="k")
    assert repr(kernel) == "<weir.elementwise k(float32 x, T a -> inout T y, bool z)>"
    assert kernel.name == "k"
    assert weir.elementwise("T x", "T y", "y = x").name == "elementwise"


def test_a_failed_operand_fails_the_results(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    if device.kind == "cuda":
        pytest.skip("host tasks on a CUDA device fail in test_host_task.py")

    def breaks(x: Any) -> None:
        raise RuntimeError("no")

    x = weir.ones(N, "float32", device=device)
    weir.host_task(breaks, weir.InOut(x))
    y = axpy(x, 2)
    with pytest.raises(weir.OperationError):
        y.numpy()
