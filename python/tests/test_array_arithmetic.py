"""Arithmetic of arrays against NumPy's: all element types, shapes, strides, numbers, scalars."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir
from conftest import ARRAY_DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES += ["float16", "float32", "float64", "complex64", "complex128"]

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in ["add", "sub", "mul", "truediv", "pow", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor"]
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ["iadd", "isub", "imul", "itruediv", "ipow", "iand", "ior", "ixor"]
}


def elements(dtype: str) -> st.SearchStrategy[Any]:
    """Numbers that no conversion between the types loses, so that results are defined."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind == "u":
        return st.integers(0, 9)
    if kind == "i":
        return st.integers(-9, 9)
    if kind == "f":
        return st.integers(-64, 64).map(lambda n: n / 8)
    return st.builds(lambda a, b: complex(a / 8, b / 8), st.integers(-64, 64), st.integers(-64, 64))


@st.composite
def operands(draw: st.DrawFn, count: int, types: list[str] = TYPES) -> list[np.ndarray]:
    """Arrays that broadcast, with strides of any sign."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=4, min_side=0)).input_shapes
    made = []
    for shape in shapes:
        dtype = draw(st.sampled_from(types))
        array = draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
        if draw(st.booleans()):
            array = np.ascontiguousarray(array.T).T.reshape(array.shape)
        made.append(array)
    return made


@st.composite
def on_device(draw: st.DrawFn, source: np.ndarray, device: str) -> weir.Array:
    """The same elements, in memory of any strides."""
    if source.ndim == 0:
        return weir.array(source, device=device)
    way = draw(st.sampled_from(["plain", "reversed", "transposed", "stepped"]))
    if way == "reversed":
        return weir.array(source[::-1], device=device)[::-1]
    if way == "transposed":
        return weir.array(source.T, device=device).T
    if way == "stepped":
        return weir.array(np.repeat(source, 2, axis=0), device=device)[::2]
    return weir.array(source, device=device)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or that it is an error."""
    try:
        with np.errstate(all="ignore"):
            return call()
    except (TypeError, ValueError, OverflowError):
        return None


def expect_same(got: Any, wanted: Any) -> None:
    if wanted is None or got is None:
        assert got is None
        assert wanted is None
        return
    wanted = np.asarray(wanted)
    assert isinstance(got, weir.Array)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    tolerance = 0.0 if wanted.dtype.kind in "biu" else 64 * float(np.finfo(wanted.dtype).eps)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_two_arrays(name: str, device: str, data: st.DataObject) -> None:
    a, b = data.draw(operands(2))
    x, y = data.draw(on_device(a, device)), data.draw(on_device(b, device))
    calculate, numpys = BINARY[name], BINARY[name]
    if name == "pow":  # negative exponents of integers fail, here as an operation
        b = abs(b)
        y = weir.array(b, device=device)
        numpys = np.power  # before NumPy 2.3 the operator does not promote types for the exponents 0, 1 and 2
    expect_same(outcome(lambda: calculate(x, y)), outcome(lambda: numpys(a, b)))


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_an_array_and_a_number(name: str, device: str, data: st.DataObject) -> None:
    (a,) = data.draw(operands(1))
    number = data.draw(st.one_of(st.booleans(), st.integers(0, 300), st.just(2.5), st.just(1 + 2j)))
    if data.draw(st.booleans()):
        number = data.draw(st.sampled_from(TYPES).map(lambda dtype: np.dtype(dtype).type(3)))
    x = data.draw(on_device(a, device))
    calculate = BINARY[name]
    if name == "pow":
        a, x = abs(a), weir.array(abs(a), device=device)
        # Not a**2, which NumPy takes for a square: of booleans that is int8, where the rules of promotion say int64.
        expect_same(outcome(lambda: calculate(x, number)), outcome(lambda: np.power(a, number)))
    else:
        expect_same(outcome(lambda: calculate(x, number)), outcome(lambda: calculate(a, number)))
        expect_same(outcome(lambda: calculate(number, x)), outcome(lambda: calculate(number, a)))


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@pytest.mark.parametrize("name", IN_PLACE)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_in_place_through_a_view(name: str, device: str, data: st.DataObject) -> None:
    """The object stays the same, and other views of the memory see the change."""
    dtype = data.draw(st.sampled_from(TYPES))
    a = np.array(data.draw(hnp.arrays(dtype, (4, 3), elements=elements(dtype))))
    b = abs(data.draw(operands(1).filter(lambda one: outcome(lambda: np.broadcast_to(one[0], (4, 3))) is not None))[0])
    x, y = weir.array(a, device=device), weir.array(b, device=device)
    whole = x
    part = part_before = x[::-2].T
    expected_part = a[::-2].T
    if outcome(lambda: np.broadcast_to(b, expected_part.shape)) is None:
        y, b = weir.array(1, dtype, device=device), np.array(1, dtype)
    failed = outcome(lambda: IN_PLACE[name](expected_part, b)) is None
    got = outcome(lambda: IN_PLACE[name](part, y))
    assert (got is None) == failed
    if not failed:
        assert got is part_before
    np.testing.assert_allclose(whole.numpy(), a, rtol=0 if a.dtype.kind in "biu" else 1e-2, equal_nan=True)


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_one_array(device: str, data: st.DataObject) -> None:
    (a,) = data.draw(operands(1))
    x = data.draw(on_device(a, device))
    expect_same(outcome(lambda: -x), outcome(lambda: -a))
    expect_same(outcome(lambda: ~x), outcome(lambda: ~a))


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@pytest.mark.parametrize("name", ["sum", "min", "max", "mean"])
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_reductions(name: str, device: str, data: st.DataObject) -> None:
    (a,) = data.draw(operands(1))
    x = data.draw(on_device(a, device))
    axis = data.draw(st.none() | hnp.valid_tuple_axes(a.ndim) | st.integers(-2, 2))
    if a.ndim == 0 and isinstance(axis, int):
        axis = None  # NumPy takes axis 0 for one that is there
    keepdims = data.draw(st.booleans())

    def of(one: Any) -> Any:
        return getattr(one, name)(axis=axis, keepdims=keepdims)

    if a.dtype.kind == "c" and name in ("min", "max"):
        a, x = a.real, weir.array(a.real, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
        wanted = outcome(lambda: of(a))
    got = outcome(lambda: of(x))
    if got is None or wanted is None:
        assert got is None
        assert wanted is None
        return
    assert got.dtype == np.asarray(wanted).dtype
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-2 if a.dtype == "float16" else 1e-4, equal_nan=True)


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_where(device: str, data: st.DataObject) -> None:
    c, a, b = data.draw(operands(3))
    x, y = data.draw(on_device(a, device)), data.draw(on_device(b, device))
    condition = weir.array(c, device=device)
    expect_same(outcome(lambda: weir.where(condition, x, y)), outcome(lambda: np.where(c, a, b)))
    expect_same(weir.where(condition, x, 1), np.where(c, a, 1))


@pytest.mark.parametrize("name", BINARY)
def test_numpy_on_the_left_gives_an_array(name: str, array_device: str) -> None:
    """S7, P2: NumPy defers, its array is copied to the device, and keeps its type."""
    a = np.array([[1, 2, 3]], "int16")
    x = weir.array([[1], [2]], "uint8" if name in ("and_", "or_", "xor") else "float32", device=array_device)
    calculate = BINARY[name]
    for left, right in ((a, x), (x, a), (np.int16(3), x), (x, np.int16(3))):
        got = calculate(left, right)
        expect_same(got, calculate(np.asarray(left), np.asarray(right)))
        assert got.device == x.device


def test_numpys_functions(array_device: str) -> None:
    x = weir.array([1.0, 2.0], device=array_device)
    expect_same(np.add(x, 1), np.array([2.0, 3.0]))
    expect_same(np.negative(x), np.array([-1.0, -2.0]))
    out = weir.empty(2, device=array_device)
    assert np.multiply(np.array([2.0, 3.0]), x, out=out) is out
    assert out.tolist() == [2, 6]
    for call in (
        lambda: np.sin(x),
        lambda: np.add.reduce(x),
        lambda: np.add(x, 1, dtype="float32"),
        lambda: np.add(x, 1, out=np.empty(2)),
        lambda: np.add(np.ones(2), np.ones(2), out=x),
        lambda: np.concatenate([x, x]),
        lambda: np.sum(x),
    ):
        with pytest.raises(weir.ArgumentTypeError, match=r"x\.numpy\(\)|NumPy"):
            call()
    a = np.ones(2)
    with pytest.raises(weir.ArgumentTypeError, match=r"x\.numpy\(\)"):
        a += x
    assert a.tolist() == [1, 1]


def test_scalars_of_numpy_keep_their_types(array_device: str) -> None:
    """NEP 50."""
    x = weir.ones(2, "float32", device=array_device)
    assert (x + 2.0).dtype == "float32"
    assert (x + np.float64(2)).dtype == "float64"
    assert (np.float64(2) * x).dtype == "float64"
    assert (x + np.float16(2)).dtype == "float32"
    assert (x + True).dtype == "float32"
    assert (x + 1j).dtype == "complex64"
    x += np.float64(1)
    assert x.dtype == "float32"
    assert x.tolist() == [2, 2]
    assert (weir.ones(2, "uint8", device=array_device) + np.uint8(255)).tolist() == [0, 0]


def test_bfloat16_is_that_of_ml_dtypes(array_device: str) -> None:
    a = np.array([1.5, -2, 2e38], ml_dtypes.bfloat16)
    x = weir.array(a, device=array_device)
    assert x.dtype == ml_dtypes.bfloat16
    assert (x * x[:1]).numpy().tobytes() == (a * a[:1]).tobytes()
    assert (x + 1).dtype == ml_dtypes.bfloat16
    assert (x + weir.ones(1, "float32", device=array_device)).dtype == "float32"
    assert (x + ml_dtypes.bfloat16(1)).numpy().tobytes() == (a + ml_dtypes.bfloat16(1)).tobytes()
    with pytest.raises(weir.ArgumentTypeError, match=r"x\.astype\(dtype\)"):
        x + weir.ones(1, "float16", device=array_device)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x % 2,
        lambda x: 2 % x,
        lambda x: x // 2,
        lambda x: x << 1,
        lambda x: 1 >> x,
        lambda x: divmod(x, 2),
        lambda x: round(x),
        lambda x: abs(x),
        lambda x: +x,
        lambda x: operator.add(x, [1]),
        lambda x: (1,) * x,
        lambda x: IN_PLACE["iadd"](x, 1.5),
    ],
)
def test_what_is_not_there_says_so(call: Callable[[weir.Array], object]) -> None:
    with pytest.raises(weir.ArgumentTypeError, match=r"arrays of Weir have no|weir\.array|astype"):
        call(weir.arange(3))


def test_other_types_may_know_arrays() -> None:
    class Knows:
        def __radd__(self, other: object) -> str:
            return "knows"

    assert weir.arange(3) + Knows() == "knows"
    with pytest.raises(TypeError):
        weir.arange(3) + "text"
    assert (weir.arange(3) == "text") is False
    assert operator.ne(weir.arange(3), None) is True


def test_arrays_of_two_devices_say_what_to_do() -> None:
    x, y = weir.ones(2), weir.ones(2, device="sim:0")
    with pytest.raises(weir.ArgumentError, match=r"x\.to\(device\)"):
        x + y
    with pytest.raises(weir.ArgumentError, match="do not fit together"):
        x + weir.ones(3)


def test_large_integers(array_device: str) -> None:
    x = weir.array([1, 2**63 - 1], device=array_device)
    assert (x < 2**200).tolist() == [True, True]
    assert (x < -(2**200)).tolist() == [False, False]
    assert (x == 2**63 - 1).tolist() == [False, True]
    assert (weir.ones(1, device=array_device) * 2**70).tolist() == [2.0**70]
    with pytest.raises(weir.ArgumentError, match="out of range"):
        x + 2**64
    with pytest.raises(weir.ArgumentError, match="out of range"):
        weir.ones(1, "uint8", device=array_device) + 256


def test_complex_numbers_with_nan_are_in_no_order(array_device: str) -> None:
    parts = [0.0, 1.0, float("nan")]
    numbers = np.array([complex(a, b) for a in parts for b in parts])
    x, y = numbers[:, None], numbers[None, :]
    ours, others = weir.array(x, device=array_device), weir.array(y, device=array_device)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        assert (compare(ours, others).numpy() == compare(x, y)).all(), compare.__name__
        assert (compare(ours, 1).numpy() == compare(x, 1)).all(), compare.__name__


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_to_whole_powers_are_multiplied_out(dtype: str, array_device: str) -> None:
    """As in NumPy, so that Gaussian integers stay what they are."""
    base = np.array([1 + 1j, -1, 1j, 3 - 4j, 2, -2j], dtype)
    x = weir.array(base, device=array_device)
    for exponent in (1, 2, 3, 5, 8):
        assert (x**exponent).tolist() == [complex(z) ** exponent for z in base.tolist()], exponent
    assert (x[1:2] ** 63).tolist() == [-1]
    assert np.allclose((x**-2).numpy(), base ** np.array(-2, dtype), rtol=1e-6)
    assert np.allclose((x**2.5).numpy(), base ** np.array(2.5, dtype), rtol=1e-5)
    assert (weir.zeros(1, dtype, device=array_device) ** 2).tolist() == [0]
