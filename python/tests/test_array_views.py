"""Views by indexing, assignment to them, iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from conftest import ARRAY_DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def counted(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype="int32").reshape(shape)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (IndexError, ValueError):
        return None


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_indices_select_what_numpys_select(device: str, data: st.DataObject) -> None:
    a = counted(data.draw(shapes))
    x = weir.array(a, device=device)
    for _ in range(2):  # of views as well
        index = data.draw(hnp.basic_indices(a.shape, allow_newaxis=True, max_dims=8))
        if data.draw(st.booleans()) and isinstance(index, tuple):
            of_numpy: tuple[Any, ...] = tuple(np.int16(part) if isinstance(part, int) else part for part in index)
            assert x[of_numpy].tolist() == np.asarray(a[index]).tolist()
        a, x = np.asarray(a[index]), x[index]
        assert x.shape == a.shape
        assert x.tolist() == a.tolist()
        assert x.size == a.size
        assert x.ndim == a.ndim
        assert x.nbytes == a.nbytes


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_assignments_change_what_numpys_change(device: str, data: st.DataObject) -> None:
    a = counted(data.draw(shapes))
    x = weir.array(a, device=device)
    index = data.draw(hnp.basic_indices(a.shape, allow_newaxis=True, max_dims=6))
    target = np.asarray(a[index])
    shape = data.draw(hnp.broadcastable_shapes(target.shape, max_dims=target.ndim, max_side=5))
    value: Any = counted(shape) + 100
    if outcome(lambda: np.broadcast_to(value, target.shape)) is None:
        value = 7
    a[index] = value
    if isinstance(value, np.ndarray):
        kind = data.draw(st.sampled_from(["array", "numpy", "list", "other device"]))
        if kind == "array":
            value = weir.array(value, device=device)
        elif kind == "list":
            value = value.astype("int8").tolist()
        elif kind == "other device":
            value = weir.array(value.astype("uint8"), device="cpu" if device == "sim:0" else "sim:0")
    x[index] = value
    assert x.tolist() == a.tolist()


@pytest.mark.parametrize("device", ARRAY_DEVICES)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_reshape_and_transpose(device: str, data: st.DataObject) -> None:
    a = counted((2, 3, 4))[:, :: data.draw(st.sampled_from([1, -1, 2]))]
    x = weir.array(a, device=device)
    if data.draw(st.booleans()):
        a, x = a.T, x.T
    shape = data.draw(st.permutations(list(a.shape)).map(tuple))
    assert x.reshape(shape).tolist() == a.reshape(shape).tolist()
    assert x.reshape(*shape).tolist() == a.reshape(*shape).tolist()
    assert x.reshape(-1).tolist() == a.reshape(-1).tolist()
    assert x.reshape(-1, 2).T.tolist() == a.reshape(-1, 2).T.tolist()


def test_views_are_the_same_memory(array_device: str) -> None:
    x = weir.zeros((3, 4), "int64", device=array_device)
    row, column, flat = x[1], x[:, 2], x.reshape(-1)
    row += 1
    column[...] = 5
    x[2, 3] = np.float64(9.7)
    assert flat.tolist() == [0, 0, 5, 0, 1, 1, 5, 1, 0, 0, 5, 9]
    x[0:1] += 1
    assert x[0].tolist() == [1, 1, 6, 1]
    x[::-1] = x  # overlapping: as if it had been copied first
    assert x[0].tolist() == [0, 0, 5, 9]


def test_iteration_ends(array_device: str) -> None:
    x = weir.array([[1, 2], [3, 4]], device=array_device)
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert [int(v) for v in x[1]] == [3, 4]
    first, second = x
    assert first.tolist() == [1, 2]
    assert second.tolist() == [3, 4]
    with pytest.raises(weir.ArgumentTypeError, match="no length"):
        len(x[0, 0])
    with pytest.raises(weir.ArgumentTypeError, match="iterated"):
        iter(x[0, 0])


@pytest.mark.parametrize("index", [3, -4, (0, 2), (0, 0, 0), (..., 0, ...), 2**70, (slice(None), slice(0, 1, 0))])
def test_a_wrong_index_is_an_index_error(index: Any) -> None:
    x = weir.zeros((3, 2))
    with pytest.raises(IndexError):
        x[index]
    with pytest.raises(weir.ArgumentError):
        x[index] = 1
    with pytest.raises(weir.ArgumentIndexError):
        x[index]


@pytest.mark.parametrize(
    "index", [True, 1.0, "a", [0, 1], np.array([0, 1]), np.array([True, False, True]), slice("a"), (0, None, "b")]
)
def test_a_wrong_type_of_index_says_what_to_do(index: Any) -> None:
    x = weir.zeros((3, 2))
    with pytest.raises(weir.ArgumentTypeError, match=r"weir\.where"):
        x[index]
    with pytest.raises(weir.ArgumentTypeError, match="integers, slices"):
        x[weir.array([0, 1])]


def test_lists_are_assigned_as_numbers_of_the_arrays_type(array_device: str) -> None:
    """Numbers of Python have no type of their own: each has to fit, as it has to alone."""
    for dtype in ("uint8", "uint16", "uint32", "uint64", "int8", "int64"):
        x = weir.zeros(3, dtype, device=array_device)
        x[:] = [1, 2, 3]
        weir.copy(x[1:], (4, 5))
        assert x.tolist() == [1, 4, 5]
        x[0:0] = []
    for dtype, number in (("int8", 300), ("uint8", -1), ("int64", 2**64 - 1)):
        x = weir.zeros(2, dtype, device=array_device)
        with pytest.raises(weir.ArgumentError, match="out of range"):
            x[:] = [1, number]
        with pytest.raises(weir.ArgumentError, match="out of range"):
            weir.copy(x, [1, number])
        assert x.tolist() == [0, 0]


def test_integers_beyond_all_types_are_rounded_to_real_numbers(array_device: str) -> None:
    x = weir.zeros(2, device=array_device)
    x[0] = 2**64
    x[1:] = [2**70]
    assert x.tolist() == [2.0**64, 2.0**70]
    assert weir.full(1, -(2**80), "float64", device=array_device).tolist() == [-(2.0**80)]
    assert weir.array([2**64, 1], "complex128", device=array_device).tolist() == [2.0**64, 1]
    with pytest.raises(weir.ArgumentError, match="out of range"):
        weir.array([2**64], device=array_device)


def test_wrong_values_are_refused(array_device: str) -> None:
    x = weir.zeros((3, 2), "int32", device=array_device)
    with pytest.raises(weir.ArgumentTypeError, match=r"x\.astype"):
        x[0] = weir.ones(2, device=array_device)
    with pytest.raises(weir.ArgumentError, match="shape"):
        x[0] = weir.ones(3, "int32", device=array_device)
    with pytest.raises(weir.ArgumentError, match="out of range"):
        x[0] = 2**31
    with pytest.raises(weir.ArgumentTypeError):
        x[0] = "text"
    with pytest.raises(weir.ArgumentError, match="cannot become"):
        x.reshape(5)
    with pytest.raises(weir.ArgumentTypeError, match="shape"):
        x.reshape("a")
    with pytest.raises(TypeError):
        del x[0]
    assert x.tolist() == [[0, 0]] * 3
