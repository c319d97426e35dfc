"""Shapes, strides and element types that DLPack has and other protocols do not (scenario B8), on each device."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import weir
from conftest import HAS_CUDA
from numpy_versions import IS_NUMPY_2
from raw_tensors import foreign, taken
from weir_conformance._dlpack import BFLOAT, Description, Producer, Taken, floats


@pytest.fixture(params=["cpu", "sim:0", *(["cuda:0"] if HAS_CUDA else [])])
def place(request: pytest.FixtureRequest) -> str:
    """The name of each device that exchanges arrays."""
    name: str = request.param
    return name


def seen_by_a_consumer(x: weir.Array) -> Taken:
    """Its description. It is released at once: nothing is read by it."""
    seen = taken(x)
    seen.close()
    return seen


# 32 dimensions: as many as NumPy 1.26 has.

MANY = (2, *[1] * 15, 3, *[1] * 14, 2)


def test_b8_32_dimensions_go_out_and_come_in(place: str) -> None:
    x = weir.arange(12, dtype="float32", device=place).reshape(MANY)
    seen = seen_by_a_consumer(x)
    assert (len(seen.shape), seen.shape) == (32, MANY)
    assert seen.strides is not None
    assert (seen.strides[0], seen.strides[16], seen.strides[31]) == (6, 2, 1)
    back = weir.from_dlpack(foreign(x))
    assert back.shape == MANY
    assert back.numpy(copy=True).ravel().tolist() == list(range(12))
    back += 1
    assert x.numpy(copy=True).ravel().tolist() == list(range(1, 13)), "it is the same memory"


def test_b8_32_dimensions_in_another_order(place: str) -> None:
    """Transposed, every axis in the place of another: strides are read by axis."""
    x = weir.arange(12, dtype="float32", device=place).reshape(MANY).T
    back = weir.from_dlpack(foreign(x))
    assert back.shape == MANY[::-1]
    assert back.numpy(copy=True).ravel().tolist() == np.arange(12).reshape(MANY).T.ravel().tolist()


def test_b8_32_dimensions_of_numpy_and_to_numpy() -> None:
    of = np.arange(12.0).reshape(MANY)
    x = weir.from_dlpack(of)
    assert x.shape == MANY
    back = np.from_dlpack(x)
    assert back.shape == MANY
    assert np.shares_memory(back, of)
    x += 1
    assert of.ravel().tolist() == list(range(1, 13))


def test_b8_control_the_order_of_32_extents_counts() -> None:
    x = weir.arange(12, dtype="float32").reshape(MANY)
    assert foreign(x).what.strides != foreign(x.T).what.strides


# Strides of dimensions with one element say nothing, so whatever they are the elements are the same.

ODD: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 1), (1, 7)),
    ((1, 3), (-5, 1)),
    ((1, 1), (-5, 0)),
    ((1,), (9,)),
    ((3, 1, 2), (2, 1 << 40, 1)),
    ((1, 6, 1), (-(1 << 40), 1, 3)),
]


@pytest.mark.parametrize(("shape", "strides"), ODD, ids=str)
def test_b8_odd_strides_of_dimensions_of_one_element(
    place: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    count = math.prod(shape)
    expected = np.arange(count, dtype="float32").reshape(shape)
    x = weir.from_dlpack(foreign(weir.arange(count, dtype="float32", device=place), shape=shape, strides=strides))
    assert x.shape == shape
    assert x.numpy(copy=True).tolist() == expected.tolist()
    assert (x + 1).numpy(copy=True).tolist() == (expected + 1).tolist()
    assert x.copy().numpy(copy=True).tolist() == expected.tolist()
    assert x.T.numpy(copy=True).tolist() == expected.T.tolist()
    assert x.reshape((-1,)).numpy(copy=True).tolist() == expected.ravel().tolist()
    again = weir.from_dlpack(foreign(x))
    assert again.numpy(copy=True).tolist() == expected.tolist(), "exported with the same strides, and taken again"
    weir.fill(x, 5)
    assert again.numpy(copy=True).ravel().tolist() == [5] * count


def test_b8_numpy_takes_odd_strides_of_one_element() -> None:
    for shape, strides in ODD:
        x = weir.from_dlpack(foreign(weir.arange(math.prod(shape), dtype="float32"), shape=shape, strides=strides))
        assert np.from_dlpack(x).ravel().tolist() == list(range(math.prod(shape)))


def test_b8_control_a_stride_of_a_dimension_of_two_elements_counts(place: str) -> None:
    x = weir.from_dlpack(foreign(weir.arange(8, dtype="float32", device=place), shape=(2, 1), strides=(5, 1)))
    assert x.numpy(copy=True).tolist() == [[0], [5]]


HUGE = [(1 << 63) - 1, -(1 << 63), 1 << 61]


@pytest.mark.parametrize("stride", HUGE)
def test_b8_a_stride_of_one_element_that_no_address_reaches_says_nothing_either(place: str, stride: int) -> None:
    of = foreign(weir.arange(3, dtype="float32", device=place), shape=(3, 1), strides=(1, stride))
    assert weir.from_dlpack(of).numpy(copy=True).tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("stride", HUGE)
def test_b8_control_a_stride_of_two_elements_that_no_address_reaches_is_refused(place: str, stride: int) -> None:
    of = foreign(weir.arange(3, dtype="float32", device=place), shape=(1, 2), strides=(1, stride))
    with pytest.raises(weir.ExchangeError, match="more memory than there are addresses"):
        weir.from_dlpack(of)


# Element types that NumPy has by ml_dtypes.

CODES = {
    "bfloat16": (BFLOAT, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}


def all_bits(name: str) -> np.ndarray:
    """An array of NumPy's: each value of 8 bits, or 256 of those of 16."""
    type_ = np.dtype(getattr(ml_dtypes, name))
    if type_.itemsize == 1:
        return np.arange(256).astype(np.uint8).view(type_)
    return (np.arange(256) * 257).astype(np.uint16).view(type_)


def bits(x: np.ndarray | weir.Array) -> bytes:
    return bytes(np.ascontiguousarray(x).tobytes())


@pytest.mark.parametrize("name", CODES)
def test_b8_narrow_types_go_out_and_come_in_with_all_their_bits(place: str, name: str) -> None:
    of = all_bits(name)
    x = weir.array(of, device=place)
    assert seen_by_a_consumer(x).dtype == (*CODES[name], 1)
    back = weir.from_dlpack(foreign(x))
    assert (str(back.dtype), back.device) == (name, weir.Device(place))
    assert bits(back.numpy(copy=True)) == bits(of)


@pytest.mark.parametrize("name", CODES)
def test_b8_narrow_types_in_views_and_written(place: str, name: str) -> None:
    of = all_bits(name)
    x = weir.array(of, device=place).reshape((16, 16))
    view = weir.from_dlpack(foreign(x[::2, 1:].T))
    assert view.shape == (15, 8)
    assert bits(view.numpy(copy=True)) == bits(of.reshape(16, 16)[::2, 1:].T)
    weir.copy(view, weir.array(np.ascontiguousarray(of.reshape(16, 16)[1::2, 1:].T)))
    of.reshape(16, 16)[::2, 1:] = of.reshape(16, 16)[1::2, 1:]
    assert bits(x.numpy(copy=True)) == bits(of), "it is the same memory, and nothing beside the view has changed"


@pytest.mark.parametrize("name", CODES)
def test_b8_narrow_types_go_to_the_cpu_and_back(place: str, name: str) -> None:
    of = all_bits(name)
    there = weir.from_dlpack(foreign(weir.array(of)), device=place)
    assert there.device == weir.Device(place)
    here = weir.from_dlpack(foreign(there), device="cpu")
    assert bits(here.numpy(copy=True)) == bits(of)


@pytest.mark.parametrize("code", [7, 10, 12, 14])
@pytest.mark.parametrize("width", [4, 16])
def test_b8_control_a_float8_of_another_width_is_refused(place: str, code: int, width: int) -> None:
    of = foreign(weir.zeros(4, "uint8", device=place), dtype=(code, width, 1))
    with pytest.raises(weir.ExchangeError):
        weir.from_dlpack(of)


@pytest.mark.skipif(not IS_NUMPY_2, reason="ml_dtypes of NumPy 1.26 has fewer types")
def test_b8_the_table_has_every_float8_that_weir_carries() -> None:
    from test_carried_types import WHOLE

    assert {*WHOLE, "bfloat16"} == CODES.keys()


def test_b8_control_memory_of_the_tests_own_is_read_by_its_type() -> None:
    """16 bits of a float32 of 1.0 are those of the bfloat16 1.0; a producer says how they are read."""
    memory = floats(1.0)
    of = Producer(Description(memory, (2,), dtype=(BFLOAT, 16, 1)))
    assert [float(one) for one in weir.from_dlpack(of).numpy(copy=True)] == [0.0, 1.0]
