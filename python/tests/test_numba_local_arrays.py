"""Bodies whose items have arrays of their own, on devices that run code of the host (rules K2, K3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import weir
from numba_kernels import uses_of

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")
cuda = pytest.importorskip("numba.cuda", reason="this Numba has no cuda: pip install numba-cuda")

float64, int64 = numba.float64, numba.int64
HOST = ["cpu", "cpu:inline", "sim:0"]
PAIR = (2, 3)
MANY = 20000  # elements of 8 bytes: more than the stack is used for


@weir.kernel
def median(i: Any, x: Any, y: Any) -> None:
    window = cuda.local.array(5, float64)
    for k in range(5):
        window[k] = x[i + k]
    for last in range(4, 1, -1):
        for k in range(last):
            if window[k] > window[k + 1]:
                window[k], window[k + 1] = window[k + 1], window[k]
    y[i] = window[2]


@pytest.mark.parametrize("device", HOST)
def test_each_item_has_an_array(device: str) -> None:
    count = 100_000  # several threads share these
    values = np.random.default_rng(1).random(count + 4)
    x, y = weir.array(values, device=device), weir.empty(count, device=device)
    median[weir.Range(count)](x, y)
    wanted = np.median(np.lib.stride_tricks.sliding_window_view(values, 5), axis=1)
    np.testing.assert_array_equal(y.numpy(), wanted)
    assert uses_of(median) == [1, 2]  # reads x, writes y: the window is neither


@weir.kernel
def over_a_barrier(item: Any, x: Any, y: Any) -> None:
    mine = cuda.local.array(PAIR, float64)
    for k in range(3):
        mine[0, k] = x[item.global_id] * k
        mine[1, k] = item.local_id
    cuda.syncthreads()
    for k in range(3):
        mine[0, k] += 1
    cuda.syncthreads()
    y[item.global_id] = mine[0].sum() + mine[1, 2]


@pytest.mark.parametrize("device", HOST)
def test_items_keep_their_arrays_over_barriers(device: str) -> None:
    x, y = weir.arange(96.0, device=device), weir.empty(96, device=device)
    over_a_barrier[weir.NdRange(96, 8)](x, y)
    assert y.tolist() == [3 * i + 3 + i % 8 for i in range(96)]


def test_control_an_array_that_items_share_does_not_keep_what_each_wrote() -> None:
    @weir.kernel
    def shared(item: Any, y: Any) -> None:
        mine = cuda.shared.array(1, float64)
        mine[0] = item.local_id
        cuda.syncthreads()
        y[item.global_id] = mine[0]

    y = weir.empty(8)
    shared[weir.NdRange(8, 8)](y)
    assert y.tolist() == [7.0] * 8


def test_in_a_loop_around_a_barrier_and_in_groups_of_two_dimensions() -> None:
    @weir.kernel
    def steps(item: Any, x: Any, y: Any) -> None:
        total = cuda.local.array(shape=2, dtype=int64)
        total[0] = total[1] = 0
        line = cuda.shared.array((2, 4), int64)
        a, b = item.local_id
        for step in range(3):
            line[a, b] = x[item.global_id] + step
            cuda.syncthreads()
            total[0] += line[1 - a, b]
            total[1] += line[a, 3 - b]
            cuda.syncthreads()
        y[item.global_id] = 1000 * total[0] + total[1]

    x = np.arange(32).reshape(4, 8)
    y = weir.zeros((4, 8), "int64")
    steps[weir.NdRange((4, 8), (2, 4))](weir.array(x), y)
    blocks = x.reshape(2, 2, 2, 4).transpose(0, 2, 1, 3)
    other_row, other_column = blocks[:, :, ::-1] * 3 + 3, blocks[:, :, :, ::-1] * 3 + 3
    wanted = (1000 * other_row + other_column).transpose(0, 2, 1, 3).reshape(4, 8)
    np.testing.assert_array_equal(y.numpy(), wanted)


def test_types_shapes_and_places_where_an_array_is_made() -> None:
    half = np.dtype("float32")

    @weir.kernel
    def bits(i: Any, y: Any) -> None:
        for k in range(2):
            if i % 2 == k:
                one = cuda.local.array((2, 2), half)
                one[0, 1] = 0.1
                y[i] = one[0, 1]
        large = cuda.local.array(MANY, int64)
        large[MANY - 1] = i
        y[i] += large[MANY - 1]
        empty = cuda.local.array(0, int64)
        y[i] += empty.size

    y = weir.empty(100)
    bits[weir.Range(100)](y)
    np.testing.assert_array_equal(y.numpy(), np.float64(np.float32(0.1)) + np.arange(100))


def test_indices_are_checked() -> None:
    @weir.kernel(boundscheck=True)
    def outside(i: Any, y: Any) -> None:
        mine = cuda.local.array(4, float64)
        y[i] = mine[i]

    with pytest.raises(weir.OperationError) as raised:
        outside[weir.Range(5)](weir.empty(5)).wait()
    assert isinstance(raised.value.__cause__, IndexError)


def refusal(body: Any, space: Any) -> str:
    with pytest.raises(weir.ArgumentError) as raised:
        weir.kernel(body)[space](weir.ones(8))
    return str(raised.value)


def test_what_an_array_cannot_be() -> None:
    def sized(i: Any, x: Any) -> None:
        n = len(x)
        mine = cuda.local.array(n, float64)
        x[i] = mine[0]

    text = refusal(sized, weir.Range(8))
    assert f"line {sized.__code__.co_firstlineno + 2}, " in text
    assert "n is no constant: the shape and the dtype are numbers or global names" in text

    def negative(i: Any, x: Any) -> None:
        mine = cuda.local.array(-1, float64)
        x[i] = mine[0]

    assert "the shape is a number or a tuple of numbers, and the dtype a type (-1 is negative)" in refusal(
        negative, weir.Range(8)
    )

    def untyped(i: Any, x: Any) -> None:
        mine = cuda.local.array(4)
        x[i] = mine[0]

    assert "a local array has a shape and a dtype, such as (64, float32)" in refusal(untyped, weir.Range(8))

    def inside(item: Any, x: Any) -> None:
        for _ in range(2):
            mine = cuda.local.array(4, float64)
            mine[0] = item.local_id
            cuda.syncthreads()
            x[item.global_id] = mine[0]

    text = refusal(inside, weir.NdRange(8, 8))
    assert "mine is used on both sides of a barrier and is array(float64, 1d, C)" in text
    assert "local arrays that get their names outside of loops and ifs" in text


def test_large_groups_keep_what_their_items_do() -> None:
    @weir.kernel
    def rotated(item: Any, x: Any, y: Any) -> None:
        mine = cuda.local.array(2, int64)
        mine[0] = x[item.global_id]
        mine[1] = item.local_id
        own = x[item.global_id] + 1
        cuda.syncthreads()
        y[item.global_id] = mine[0] + 10 * mine[1] + 100 * own

    x = weir.arange(2 * MANY)
    y = weir.zeros(2 * MANY, "int64")
    rotated[weir.NdRange(2 * MANY, MANY)](x, y)
    values = np.arange(2 * MANY)
    np.testing.assert_array_equal(y.numpy(), values + 10 * (values % MANY) + 100 * (values + 1))
