"""Fourier transforms of arrays of Weir and NumPy (P1 to P3, E1 to E8, E10)."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import weir
from weir.testing import Gate

NAMES = ["fft", "ifft", "rfft", "irfft", "fftn", "ifftn", "rfftn", "irfftn"]
REAL_OPERANDS = {"rfft", "rfftn"}


def operand(name: str, shape: tuple[int, ...] = (3, 4, 6), dtype: str = "float64") -> np.ndarray:
    random = np.random.default_rng(7)
    if name in REAL_OPERANDS:
        return random.standard_normal(shape).astype(dtype)
    values = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    return values.astype("complex64" if dtype == "float32" else "complex128")


def close(a: np.ndarray, b: np.ndarray) -> bool:
    scale = float(np.linalg.norm(b.ravel())) or 1.0
    return a.shape == b.shape and float(np.linalg.norm((a - b).ravel())) <= 1e-5 * scale


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
def test_results_are_those_of_numpy(name: str, norm: str | None) -> None:
    a = operand(name)
    expected = getattr(np.fft, name)(a, norm=norm)
    given = {"norm": norm}
    of_numpy = getattr(weir.fft, name)(a, **given)
    of_weir = getattr(weir.fft, name)(weir.array(a), **given)
    assert isinstance(of_numpy, np.ndarray)
    assert isinstance(of_weir, weir.Array)
    assert of_numpy.dtype == expected.dtype
    assert close(of_numpy, expected)
    assert close(of_weir.numpy(), expected)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_axis_and_length_are_those_of_numpy(name: str) -> None:
    a = operand(name)
    for axis in (-1, 0, 1):
        for n in (None, 3, 9):
            expected = getattr(np.fft, name)(a, n=n, axis=axis)
            assert close(getattr(weir.fft, name)(a, n=n, axis=axis), expected)
            assert close(getattr(weir.fft, name)(a, n=n, axes=[axis]), expected)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_axes_and_lengths_are_those_of_numpy(name: str) -> None:
    a = operand(name)
    for axes in ((0, 2), (1,), (2, 1)):
        assert close(getattr(weir.fft, name)(a, axes=axes), getattr(np.fft, name)(a, axes=axes))
    assert close(getattr(weir.fft, name)(a, n=(5, 8), axes=(0, 2)), getattr(np.fft, name)(a, s=(5, 8), axes=(0, 2)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_e2_results_lie_where_the_operand_lies(name: str, dtype: str, device: weir.Device) -> None:
    a = operand(name, dtype=dtype)
    with weir.Stream(device):
        result = getattr(weir.fft, name)(weir.array(a, device=device))
    assert result.device == device
    assert close(result.numpy(copy=True), getattr(np.fft, name)(a))


def test_e2_the_call_returns_before_its_work_is_done(device: weir.Device) -> None:
    s, other = weir.Stream(device), weir.Stream(device)
    x = weir.array(operand("fft"), device=device, stream=s)
    s.synchronize()
    with Gate() as gate:
        gate.hold(s)
        y = weir.fft.fft(x, stream=s)
        assert not y.ready
        z = weir.fft.ifft(y, stream=other)  # on another stream: Weir orders it
        x *= 0
    assert close(z.numpy(copy=True), operand("fft"))
    assert not x.numpy(copy=True).any()


def test_e2_control_a_blocking_call_waits_for_its_work(device: weir.Device) -> None:
    x = weir.array(operand("fft"), device=device)
    with weir.Stream(device):
        assert weir.fft.fft(x, blocking=True).ready


def test_a12_a_call_on_numpys_arrays_blocks(device: weir.Device) -> None:
    x = operand("fft")
    expected = np.fft.fft(x)
    y = weir.fft.fft(x, execution=device)
    x += 1
    assert close(y, expected)


def test_e1_operands_of_the_cpu_may_be_computed_with_elsewhere() -> None:
    x = weir.array(operand("fft"))
    for execution in ("sim", "sim:0", weir.Device("sim:0")):
        y = weir.fft.fft(x, execution=execution)
        assert y.device == weir.Device("cpu")
        assert close(y.numpy(copy=True), np.fft.fft(operand("fft")))
    s = weir.Stream("sim:0")
    assert weir.fft.fft(x, execution="sim", stream=s).ready


def test_out_is_filled_and_given_back() -> None:
    a = operand("fft")
    x = weir.array(a)
    out = weir.zeros(a.shape, "complex128")
    assert weir.fft.fft(x, out=out) is out
    assert close(out.numpy(copy=True), np.fft.fft(a))
    assert weir.fft.fft(x, out=x) is x  # in place
    assert close(x.numpy(copy=True), np.fft.fft(a))
    of_numpy = np.zeros(a.shape, "complex128")
    assert weir.fft.fft(a, out=of_numpy) is of_numpy
    assert close(of_numpy, np.fft.fft(a))
    with pytest.raises(weir.ArgumentTypeError, match="out="):
        weir.fft.fft(x, out=of_numpy)
    with pytest.raises(weir.ArgumentTypeError, match="one of NumPy, too"):
        weir.fft.fft(a, out=out)
    with pytest.raises(weir.ArgumentError, match=r"out= has shape \(2,\)"):
        weir.fft.fft(a, out=np.zeros(2, "complex128"))


def test_strided_operands_and_those_of_one_element() -> None:
    a = operand("fft", (6, 8))
    x = weir.array(a)
    for part in (np.s_[::2, 1:], np.s_[:, ::-1], np.s_[:1, :1]):
        assert close(weir.fft.fft(x[part]).numpy(copy=True), np.fft.fft(a[part]))
        assert close(weir.fft.fft(a[part]), np.fft.fft(a[part]))
    assert close(weir.fft.fft(x.T).numpy(copy=True), np.fft.fft(a.T))


def test_the_stateful_form_computes_the_same() -> None:
    a = operand("fft")
    with weir.fft.FFT(weir.array(a)) as f:
        f.plan()
        forward = f.execute()
        inverse = f.execute(direction="inverse")
    assert close(forward.numpy(), np.fft.fftn(a))
    assert close(inverse.numpy(), np.fft.ifftn(a))
    real = operand("rfft")
    with weir.fft.FFT(weir.array(real), axes=[1], norm="ortho") as f:
        f.plan()
        assert close(f.execute().numpy(), np.fft.rfft(real, axis=1, norm="ortho"))
    half = np.fft.rfft(real)
    with weir.fft.FFT(weir.array(half), axes=[-1], kind="c2r") as f:
        f.plan()
        assert close(f.execute(direction="inverse").numpy(), real)


def test_e3_streams_may_change_between_phases(device: weir.Device) -> None:
    first, second = weir.Stream(device), weir.Stream(device)
    a, b = operand("fft"), 2 * operand("fft")
    with first:
        x = weir.array(a, device=device)
    f = weir.fft.FFT(x)
    f.plan(stream=first)
    held = Gate()
    held.hold(first)
    one = f.execute(stream=first)
    with second:
        y = weir.array(b, device=device)
    f.reset_operand(y, stream=second)
    del x, y
    two = f.execute(stream=second, release_workspace=True)
    f.release_operand()
    held.open()
    assert close(one.numpy(copy=True), np.fft.fftn(a))
    assert close(two.numpy(copy=True), np.fft.fftn(b))
    f.free()


def test_e4_changes_queued_before_are_seen_and_changes_after_are_not(device: weir.Device) -> None:
    s = weir.Stream(device)
    a = operand("fft")
    with s:
        x = weir.array(a, device=device)
        with weir.fft.FFT(x) as f, Gate() as gate:
            f.plan()
            gate.hold(s)
            x *= 2
            y = f.execute()
            x *= 2
    assert close(y.numpy(copy=True), 2 * np.fft.fftn(a))


def test_e4_an_operand_of_numpy_is_taken_as_it_is_at_execute() -> None:
    a = operand("fft")
    with weir.fft.FFT(a) as f:
        f.plan()
        a *= 2
        y = f.execute()
        a *= 2
        assert isinstance(y, np.ndarray)
        assert close(2 * y, np.fft.fftn(a))
        b = operand("fft") + 1
        f.reset_operand(b)
        assert close(f.execute(), np.fft.fftn(b))


def test_e6_states_are_kept_apart() -> None:
    a = operand("fft")
    x = weir.array(a)
    f = weir.fft.FFT(x)
    with pytest.raises(weir.StateError, match="plan"):
        f.execute()
    f.plan()
    f.release_operand()
    f.release_operand()
    with pytest.raises(weir.StateError, match="reset_operand"):
        f.execute()
    f.reset_operand(x)
    assert close(f.execute().numpy(), np.fft.fftn(a))
    with pytest.raises(weir.ArgumentError, match="make a new plan"):
        f.reset_operand(weir.zeros(3, "complex128"))
    with pytest.raises(weir.ArgumentTypeError, match="NumPy"):
        f.reset_operand(a)
    assert close(f.execute().numpy(), np.fft.fftn(a))  # the old operand is still there
    f.free()
    f.free()
    for call in (f.plan, f.execute, f.release_operand, lambda: f.reset_operand(x)):
        with pytest.raises(weir.StateError, match="freed"):
            call()


def test_e6_an_exception_frees_and_references_are_restored() -> None:
    a = operand("fft")
    x = weir.array(a)
    counts = sys.getrefcount(x), sys.getrefcount(a)
    with pytest.raises(ZeroDivisionError), weir.fft.FFT(x) as f:
        f.plan()
        raise ZeroDivisionError
    with pytest.raises(weir.StateError, match="freed"):
        f.execute()
    g = weir.fft.FFT(a)
    g.plan()
    g.execute()
    g.free()
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(a)) == counts
    alive = weakref.ref(g)
    del g
    assert alive() is None


def test_e7_limits_of_memory() -> None:
    x = weir.array(operand("fft"))
    for limit in (1 << 20, 0.5, "80%", "1 MiB", "1.5 kB"):
        weir.fft.fft(x, memory_limit=limit)
        with weir.fft.FFT(x, memory_limit=limit) as f:
            f.plan()
    with pytest.raises(weir.OutOfMemory):
        weir.fft.fft(x, execution="sim", memory_limit=10)
    for wrong, error in ((-1, weir.ArgumentError), (2.0, weir.ArgumentError), ("x", weir.ArgumentError)):
        with pytest.raises(error, match="memory limit"):
            weir.fft.fft(x, memory_limit=wrong)
    for wrong in (None, True, [1]):
        with pytest.raises(weir.ArgumentTypeError, match="memory_limit"):
            weir.fft.fft(x, memory_limit=wrong)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"stream": weir.Stream("sim:0")}, weir.ArgumentError, "sim:0.* operand lies on cpu"),
        ({"stream": "s"}, weir.ArgumentTypeError, "no stream"),
        ({"norm": "none"}, weir.ArgumentError, "norm is 'none'"),
        ({"norm": 1}, weir.ArgumentTypeError, "norm is 1"),
        ({"axis": 9}, weir.ArgumentError, "no axis 9"),
        ({"axis": "x"}, weir.ArgumentTypeError, "axis is 'x'"),
        ({"axes": []}, weir.ArgumentError, "axes is empty"),
        ({"n": 1.5}, weir.ArgumentTypeError, "n is 1.5"),
        ({"blocking": False}, weir.ArgumentError, "blocking is False"),
        ({"execution": "tpu"}, weir.ArgumentError, "tpu"),
        ({"execution": 3}, weir.ArgumentTypeError, "device is 3"),
    ],
)
def test_e8_errors_say_what_to_pass(given: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as told:
        weir.fft.fft(weir.array(operand("fft")), **given)
    assert "::" not in str(told.value)


@pytest.mark.parametrize(
    ("shape", "given", "words"),
    [
        ((4, 4), {"axes": (0, 1), "n": 3}, "give their lengths as n, one for each axis"),
        ((4, 4), {"axes": (0, 1), "n": (3,)}, "n has the lengths of 1 axes, and 2 are transformed"),
        ((4, 4), {"n": (0, 4)}, "can be given as n$"),
        ((), {}, r"give it one with x\.reshape\(1\)"),
    ],
)
def test_x10_lengths_are_called_n(shape: tuple[int, ...], given: dict[str, Any], words: str) -> None:
    with pytest.raises(weir.ArgumentError, match=words):
        weir.fft.fftn(np.ones(shape), **given)
    assert weir.fft.fftn(np.ones((4, 4)), axes=(0, 1), n=(3, 5)).shape == (3, 5)


def test_x10_a_plan_refuses_what_is_no_stream_at_once() -> None:
    for x in (np.ones(4), weir.ones(4)):
        with pytest.raises(weir.ArgumentTypeError, match="no stream"):
            weir.fft.FFT(x, stream="nonsense")


def test_s9_plans_print_what_they_are() -> None:
    f = weir.fft.FFT(weir.ones((4, 2), "float32"))
    assert repr(f) == "<weir.fft.FFT of float32 (4, 2) on cpu>"
    f.plan()
    f.release_operand()
    assert repr(f) == "<weir.fft.FFT of float32 (4, 2) on cpu, released>"
    f.free()
    assert repr(f) == "<weir.fft.FFT freed>"


def test_other_operands_are_refused() -> None:
    for wrong in ([1, 2], 3, None):
        with pytest.raises(weir.ArgumentTypeError, match=r"pass a weir\.Array or an array of NumPy"):
            weir.fft.fft(wrong)
    with pytest.raises(weir.ArgumentTypeError, match="float16"):
        weir.fft.fft(weir.ones(4, "float16"))
    with pytest.raises(weir.ArgumentError, match="direction"):
        f = weir.fft.FFT(weir.ones(4))
        f.plan()
        f.execute(direction="sideways")
    with pytest.raises(weir.ArgumentError, match="kind"):
        weir.fft.FFT(weir.ones(4), kind="r2r")


def test_an_out_that_cannot_be_written_is_refused_before_the_work() -> None:
    a = np.arange(4.0)
    of_numpy = np.zeros(4, "complex128")
    of_numpy.flags.writeable = False
    before = weir.stats()["operations"]
    with pytest.raises(weir.ArgumentError, match="read-only"):
        weir.fft.fft(a, out=of_numpy)
    with pytest.raises(weir.ArgumentError, match="cannot be written"):
        weir.fft.fft(weir.asarray(a), out=weir.asarray(of_numpy))
    assert weir.stats()["operations"] == before
