"""Reductions of a program along axes (rules K1 to K4), beside NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from hypothesis import given, settings
from hypothesis import strategies as st

RANDOM = np.random.default_rng(5)


@pytest.fixture
def norm() -> weir.ReductionKernel:
    return weir.reduction("T x", "T y", "x * x", "a + b", identity=0, post="y = sqrt(a)", name="norm")


total = weir.reduction("T x", "T y", "x", identity=0, name="total")


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


AXES = [None, 0, 1, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axes_are_those_of_numpy(
    any_device: weir.Device, axis: Any, keepdims: bool, norm: weir.ReductionKernel
) -> None:
    x = RANDOM.random((3, 5, 7))
    y = norm(weir.array(x, device=any_device), axis=axis, keepdims=keepdims)
    wanted = np.sqrt((x * x).sum(axis=axis, keepdims=keepdims))
    assert y.device == any_device
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-14)


@given(
    shape=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    axes=st.lists(st.integers(0, 3), max_size=4, unique=True),
    order=st.permutations(range(4)),
    step=st.sampled_from([1, 2, -1]),
)
@settings(max_examples=150, deadline=None)
def test_any_layout_is_exact_in_integers(shape: list[int], axes: list[int], order: list[int], step: int) -> None:
    x = np.arange(int(np.prod(shape))).reshape(shape) % 11 - 5
    turned = x.transpose([axis for axis in order if axis < x.ndim])[..., ::step]
    mine = weir.array(x)
    axis = tuple(one for one in axes if one < x.ndim)
    np.testing.assert_array_equal(total(weir.asarray(turned, copy=True), axis=axis).numpy(), turned.sum(axis=axis))
    np.testing.assert_array_equal(total(turned, axis=axis).numpy(), turned.sum(axis=axis))
    np.testing.assert_array_equal(total(mine, axis=axis).numpy(), x.sum(axis=axis))


argmax = weir.reduction(
    "T x",
    "T most, int64 where",
    "{x, i}",
    "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b",
    post="most = a.value; where = a.index",
    type="T value, int64 index",
)


@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    axis=st.integers(0, 3),
    order=st.permutations(range(4)),
    step=st.sampled_from([1, 2, -1]),
    whole=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_place_of_the_largest_is_that_of_numpy(
    shape: list[int], axis: int, order: list[int], step: int, whole: bool
) -> None:
    x = np.arange(int(np.prod(shape))).reshape(shape) * 7 % 11
    turned = x.transpose([one for one in order if one < x.ndim])[..., ::step]
    along = None if whole else axis % x.ndim
    most, where = argmax(weir.asarray(turned), axis=along)
    np.testing.assert_array_equal(most.numpy(), turned.max(axis=along))
    np.testing.assert_array_equal(where.numpy(), turned.argmax(axis=along))


@pytest.mark.parametrize("shape", [(300_007,), (3, 100_003), (100_003, 3)], ids=str)
def test_the_place_of_the_largest_of_many(any_device: weir.Device, shape: tuple[int, ...]) -> None:
    x = RANDOM.integers(0, 50_000, shape)
    mine = weir.array(x, device=any_device)
    for axis in (None, 0, -1):
        np.testing.assert_array_equal(argmax(mine, axis=axis)[1].numpy(), x.argmax(axis=axis))


def test_the_number_of_elements_is_known() -> None:
    mean = weir.reduction("T x", "T y", "x", post="y = a / n", identity=0)
    x = RANDOM.random((5, 7))
    np.testing.assert_allclose(mean(x, axis=0).numpy(), x.mean(axis=0), rtol=1e-14)
    ramp = weir.reduction("", "int64 y", "i + n", identity=0)
    assert ramp().item() == 1


@pytest.mark.parametrize("shape", [(100_003,), (3, 50_000), (50_000, 3), (70, 80, 90)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_accurate(any_device: weir.Device, shape: tuple[int, ...], dtype: str) -> None:
    x = RANDOM.random(shape).astype(dtype)
    mine = weir.array(x, device=any_device)
    for axis in (None, 0, -1):
        exact = x.astype("float64").sum(axis=axis) if dtype == "float32" else x.astype("longdouble").sum(axis=axis)
        bound = (68 + 10) * np.finfo(dtype).eps / 2
        seen = total(mine, axis=axis).numpy()
        assert (abs(seen - exact) <= bound * exact).all(), (shape, axis)


def test_several_inputs_and_outputs(any_device: weir.Device) -> None:
    moments = weir.reduction(
        "float32 x, float32 w, float64 scale",
        "float64 sum, bool large",
        "scale * w * x",
        "a + b",
        post="sum = a; large = a > 100",
        identity="0",
    )
    x = RANDOM.random((20, 30)).astype("float32")
    w = RANDOM.random(30).astype("float32")
    sums, large = moments(weir.array(x, device=any_device), weir.array(w, device=any_device), 10, axis=1)
    wanted = 10 * (x.astype("float64") * w).sum(axis=1)
    np.testing.assert_allclose(sums.numpy(), wanted, rtol=1e-6)
    assert large.tolist() == (wanted > 100).tolist()


def test_values_have_the_type_that_is_given() -> None:
    x = weir.full(1000, 0.1, "float32")
    wide = weir.reduction("float32 x", "float32 y", "x", type="float64")
    assert wide(x).item() == np.float32(1000 * float(np.float32(0.1)))
    assert weir.reduction("T x", "int64 y", "x > 0.05f", identity=0)(x).item() == 1000
    any_of = weir.reduction("T x", "bool y", "x > 1", "a || b", identity=False)
    assert any_of(x).item() is False


def test_outputs_that_there_are_are_returned(any_device: weir.Device) -> None:
    x = weir.ones((4, 5), "int32", device=any_device)
    y = weir.zeros(4, "int32", device=any_device)
    assert total(x, axis=1, out=y) is y
    assert y.tolist() == [5] * 4
    event = total.launch(x, axis=1, out=y)
    assert isinstance(event, weir.Event)
    event.synchronize()
    kept = weir.zeros((4, 1), "int32", device=any_device)
    total(x, axis=1, keepdims=True, out=kept)
    assert kept.tolist() == [[5]] * 4


def test_arrays_of_numpy_are_inputs_and_outputs() -> None:
    x = np.arange(12.0).reshape(3, 4)
    assert total(x, axis=0).tolist() == [12, 15, 18, 21]
    out = np.zeros(3)
    assert total(x, axis=1, out=out) is out
    assert out.tolist() == [6, 22, 38]


def test_no_elements() -> None:
    none = weir.zeros((0, 3))
    assert total(none, axis=0).tolist() == [0, 0, 0]
    assert total(none, axis=1).shape == (0,)
    largest = weir.reduction("T x", "T y", "x", "max(a, b)")
    said = message(weir.ArgumentError, lambda: largest(none, axis=0))
    assert "no identity" in said
    assert "(0, 3)" in said


def of_none(identity: Any, dtype: str, device: weir.Device) -> Any:
    """The value of no elements."""
    return weir.reduction("T x", "T y", "x", identity=identity)(weir.zeros(0, dtype, device=device)).item()


IDENTITIES: list[tuple[Any, str]] = [
    (math.inf, "float64"),
    (-math.inf, "float32"),
    (math.inf, "float16"),
    (-0.0, "float64"),
    (5e-324, "float64"),
    (1 / 3, "float64"),
    (2**64, "float64"),
    (-(10**30), "float64"),
    (-(2**63), "int64"),
    (2**64 - 1, "uint64"),
    (127, "int8"),
    (1.0, "int8"),
    (True, "int32"),
    (1 - 2j, "complex128"),
    (3, "complex64"),
    (np.float32(0.5), "float64"),
    (np.int64(3), "float32"),
    (np.uint8(200), "uint8"),
    (np.float64(2), "float64"),
]


@pytest.mark.parametrize(("identity", "dtype"), IDENTITIES, ids=repr)
def test_a_number_as_identity_is_exactly_that_number(identity: Any, dtype: str, any_device: weir.Device) -> None:
    assert repr(of_none(identity, dtype, any_device)) == repr(np.array(identity).astype(dtype).item())


def test_nan_is_an_identity(any_device: weir.Device) -> None:
    assert math.isnan(of_none(math.nan, "float64", any_device))


def test_the_identity_of_a_minimum_is_infinity(any_device: weir.Device) -> None:
    smallest = weir.reduction("T x", "T y", "x", "a < b ? a : b", identity=math.inf)
    assert smallest(weir.arange(3.0, device=any_device)).item() == 0
    assert smallest(weir.zeros((2, 0), device=any_device), axis=1).tolist() == [math.inf, math.inf]


@pytest.mark.parametrize(
    ("identity", "dtype"),
    [
        (300, "int8"),
        (-1, "uint8"),
        (1.5, "int8"),
        (math.inf, "int64"),
        (math.nan, "int32"),
        (2**64, "uint64"),
        (1j, "float64"),
        (1e300, "float32"),
        (1e300j, "complex64"),
        (np.int64(256), "uint8"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("elements", [0, 3])
def test_an_identity_that_the_type_does_not_have_is_refused(
    identity: Any, dtype: str, elements: int, any_device: weir.Device
) -> None:
    kernel = weir.reduction("T x", "T y", "x", identity=identity, name="k")
    said = message(weir.ArgumentError, lambda: kernel(weir.zeros(elements, dtype, device=any_device)))
    assert "the reduction k(T x -> T y): the identity" in said
    assert f"is no value of {dtype}" in said


def test_an_identity_that_no_value_can_be_is_refused_at_once() -> None:
    said = message(weir.ArgumentError, lambda: weir.reduction("T x", "T y", "x", identity=10**400))
    assert "beyond all types" in said
    pair = message(
        weir.ArgumentError,
        lambda: weir.reduction("T x", "int64 y", "{x, i}", "a", post="y = a.at", type="T v, int64 at", identity=0),
    )
    assert "its values have fields and the identity is the number 0" in pair


def test_the_same_bits_in_every_run_and_on_any_number_of_threads() -> None:
    x = RANDOM.random((64, 30_011)).astype("float32")
    alone = weir.array(x, device="cpu:inline")
    shared = weir.array(x, device="cpu")
    for axis in (None, 0, 1):
        bits = total(alone, axis=axis).numpy().tobytes()
        for _ in range(3):
            assert total(shared, axis=axis).numpy().tobytes() == bits


# Order.


def test_it_waits_for_its_operands_and_the_host_does_not(device: weir.Device) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(1000, stream=s1)
    total(x, stream=s2).numpy()  # compiled by now
    gate = weir.testing.Gate()
    gate.hold(s1)
    weir.fill(x, 5, stream=s1)
    y = total(x, stream=s2)
    weir.fill(x, 7, stream=s1)
    assert not y.ready
    gate.open()
    assert y.item() == 5000
    assert x.numpy()[0] == 7


def test_control_without_ordering_it_reads_too_early(device: weir.Device) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(1000, stream=s1)
    total(x, stream=s2).numpy()
    with weir.ordering("manual"):
        gate = weir.testing.Gate()
        gate.hold(s1)
        weir.fill(x, 5, stream=s1)
        y = total(x, stream=s2)
        s2.synchronize()
        assert y.item() == 1000
        gate.open()
        device.synchronize()


def test_check_names_the_reduction(device: weir.Device, norm: weir.ReductionKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(1000, stream=s1)
    device.synchronize()
    with weir.check(assume="manual") as report:
        weir.fill(x, 5, stream=s1)
        norm(x, stream=s2)
    assert [(race.kind, race.second.label) for race in report.races] == [("RAW", "norm")]


def test_after(device: weir.Device) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(10, stream=s2)
    total(x, stream=s2).numpy()
    gate = weir.testing.Gate()
    gate.hold(s1)
    y = total(x, stream=s2, after=s1.record())
    assert not y.ready
    gate.open()
    assert y.item() == 10


def test_a_launch_may_wait() -> None:
    assert total.launch(weir.ones(10), out=weir.empty(()), wait=True).done


# Errors.


def test_what_is_wrong_is_named() -> None:
    x = weir.ones((2, 3))
    assert "named twice" in message(weir.ArgumentError, lambda: total(x, axis=(0, -2)))
    assert "1 inputs, and got 2" in message(weir.ArgumentError, lambda: total(x, x))
    assert "out=" in message(weir.ArgumentError, lambda: total.launch(x, out=None))
    assert "shape (3,)" in message(weir.ArgumentError, lambda: total(x, axis=0, out=weir.zeros(2)))
    said = message(weir.ArgumentError, lambda: weir.reduction("T x", "T y", "x + unknown", name="k")(x))
    assert "the map of the reduction k(T x -> T y) does not compile" in said
    said = message(weir.ArgumentError, lambda: weir.reduction("T x", "T y", "x", post="y = q")(x))
    assert "the post of the reduction" in said
    assert "does not compile: " in said
    assert "reads the output" not in said
    said = message(weir.ArgumentError, lambda: weir.reduction("T x", "T y, T z", "x", post="z = a; y = z")(x))
    assert "reads the output z" in said
    assert "several outputs" in message(weir.ArgumentError, lambda: weir.reduction("T x", "T y, T z", "x"))
    assert "semicolon" in message(weir.ArgumentError, lambda: weir.reduction("T x", "T y", "x;"))
    assert "map" in message(weir.ArgumentTypeError, lambda: weir.reduction("T x", "T y", 3))  # type: ignore[arg-type]
    assert "identity" in message(
        weir.ArgumentTypeError,
        lambda: weir.reduction("T x", "T y", "x", identity=[0]),  # type: ignore[arg-type]
    )
    assert "post" in message(
        weir.ArgumentTypeError,
        lambda: weir.reduction("T x", "T y", "x", post=1),  # type: ignore[arg-type]
    )


def test_it_has_a_name_and_a_text(norm: weir.ReductionKernel) -> None:
    assert norm.name == "norm"
    assert repr(norm) == "<weir.reduction norm(T x -> T y)>"
    assert weir.reduction("T x", "T y", "x").name == "reduction"


def test_it_is_prepared(norm: weir.ReductionKernel, any_device: weir.Device) -> None:
    x = weir.ones((3, 4), device=any_device)
    norm.prepare(x, axis=1)
    assert norm(x, axis=1).tolist() == [2.0] * 3
    assert "named twice" in message(weir.ArgumentError, lambda: norm.prepare(x, axis=(1, 1)))


def test_a_failed_operand_fails_the_results() -> None:
    x = weir.ones(4)

    def fail(_: object) -> None:
        raise ValueError("on purpose")

    weir.host_task(fail, weir.InOut(x))
    with pytest.raises(weir.OperationError, match="on purpose"):
        total(x).item()
