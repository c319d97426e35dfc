"""What Weir finds in Python bodies: the arrays that they read, and those that they write (rules K1, K3)."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import pytest
import weir
from numba_kernels import N, double, failed, message, uses_of
from weir.testing import Gate

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")


# --- Reads and writes


def found_in(body: Callable[..., None], *args: Any, space: Any = None) -> list[int]:
    kernel = weir.kernel(body)
    kernel[space or weir.Range(2)].prepare(*args)
    return uses_of(kernel)


@numba.njit
def half(x: Any, i: int) -> Any:
    return 0.5 * x[i]


@numba.njit
def clear(x: Any, i: int) -> None:
    x[i] = 0


@numba.njit
def row_of(x: Any, i: int) -> Any:
    return x[i]


# A C function that writes through the address that it gets.
set_to_zero = ctypes.CDLL(None).memset
set_to_zero.argtypes, set_to_zero.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t), ctypes.c_void_p


@numba.njit
def count_down(x: Any, i: int) -> Any:
    if i <= 0:
        return x[0]
    return count_down(x, i - 1)


READS, WRITES, UNCLEAR, COVERS = 1, 2, 4, 8


def test_k1_reads_and_writes_are_found_in_the_body() -> None:
    def functions(i: int, x: Any, y: Any) -> None:
        y[i] = math.sqrt(x[i]) + abs(x[0])

    def adds(i: int, x: Any, y: Any) -> None:
        y[i] += x[i]

    def sometimes(i: int, x: Any, y: Any) -> None:
        if x[i] > 0:
            y[i] = 1

    def elsewhere(i: int, x: Any, y: Any) -> None:
        y[i + x.size - len(x)] = 1

    def other_names(i: int, x: Any, y: Any) -> None:
        z = y if i > 3 else x
        z[i] = 1

    def loops(i: int, x: Any, y: Any) -> None:
        for value in x:
            y[i] = value

    def both(i: int, x: Any, y: Any) -> None:
        x[i], y[i] = y[i], x[i]

    def helpers(i: int, x: Any, y: Any) -> None:
        clear(y, i)
        y[i] = half(x, i)

    def another_index(i: int, x: Any, y: Any) -> None:
        i += 1
        y[i - 1] = 1
        i = 0
        x[i] = 1

    def another_array(i: int, x: Any, y: Any) -> None:
        y = x
        y[i] = 1

    def calls_itself(i: int, x: Any, y: Any) -> None:
        y[i] = count_down(x, i)

    def by_name(i: int, x: Any, y: Any) -> None:
        y[i] = half(i=i, x=x)

    def in_a_list(i: int, x: Any, y: Any) -> None:
        for one in [x, y]:
            one[i] = 1

    def early(i: int, x: Any, y: Any) -> None:
        if x[i] > 0:
            return
        y[i] = 1

    def nothing(i: int, x: Any, y: Any) -> None:
        pass

    x, y = weir.ones(2), weir.ones(2)
    assert found_in(functions, x, y) == [READS, WRITES | COVERS]
    assert found_in(adds, x, y) == [READS, READS | WRITES | COVERS]
    assert found_in(sometimes, x, y) == [READS, WRITES]
    assert found_in(elsewhere, x, y) == [0, WRITES]
    assert found_in(other_names, x, y) == [WRITES, WRITES]
    assert found_in(loops, x, y) == [READS, WRITES]
    assert found_in(both, x, y) == [READS | WRITES | COVERS] * 2
    assert found_in(helpers, x, y) == [READS, WRITES | COVERS]
    assert found_in(another_index, x, y) == [WRITES, WRITES]
    assert found_in(another_array, x, y) == [WRITES | COVERS, 0]
    assert found_in(calls_itself, x, y)[0] & UNCLEAR
    assert found_in(by_name, x, y) == [UNCLEAR, WRITES | COVERS]
    assert [one & (WRITES | UNCLEAR) != 0 for one in found_in(in_a_list, x, y)] == [True, True]
    assert found_in(early, x, y) == [READS, WRITES]
    assert found_in(nothing, x, y) == [0, 0]


def test_k1_views_of_an_array_are_the_array() -> None:
    def rows(i: int, x: Any, y: Any) -> None:
        row = y[i]
        row[0] = x[i][1]

    def slices(i: int, x: Any, y: Any) -> None:
        y[i, :] = x[i, :]

    def transposed(i: int, x: Any, y: Any) -> None:
        t = y.T
        t[0, i] = x.T[1, i]

    def in_a_tuple(i: int, x: Any, y: Any) -> None:
        pair = (x, y)
        pair[1][i, 0] = pair[0][i, 0]

    def from_a_helper(i: int, x: Any, y: Any) -> None:
        row_of(y, i)[0] = x[i, 0]

    def unknown(i: int, x: Any, y: Any) -> None:
        y[i, 0] = x.sum()

    def addresses(i: int, x: Any, y: Any) -> None:
        y[i, 0] = x.ctypes.data

    def to_c(i: int, x: Any, y: Any) -> None:
        set_to_zero(x.ctypes, 0, 8)
        y[i, 0] = 1

    def filled(i: int, x: Any, y: Any) -> None:
        y[i, :] = 1
        y[i].fill(x[0, 0])

    x, y = weir.ones((2, 2)), weir.ones((2, 2))

    def writes(found: list[int]) -> list[bool]:
        return [bool(one & (WRITES | UNCLEAR)) for one in found]

    assert found_in(rows, x, y) == [READS, WRITES]
    assert found_in(slices, x, y) == [READS, WRITES]
    assert found_in(transposed, x, y) == [READS, WRITES]
    assert writes(found_in(in_a_tuple, x, y))[1]
    assert writes(found_in(from_a_helper, x, y)) == [False, True]
    assert writes(found_in(unknown, x, y)) == [True, True]
    assert writes(found_in(filled, x, y)) == [False, True]
    assert found_in(addresses, x, y)[0] & UNCLEAR
    assert found_in(to_c, x, y)[0] & UNCLEAR


def test_k1_an_item_that_covers(on: weir.Stream) -> None:
    def own(item: weir.Item, y: Any) -> None:
        y[item.global_id] = 1

    def shifted(item: weir.Item, y: Any) -> None:
        y[item.group_id] = 1

    assert found_in(own, weir.ones(4), space=weir.NdRange(4, 2)) == [WRITES | COVERS]
    assert found_in(shifted, weir.ones(4), space=weir.NdRange(4, 2)) == [WRITES]


def test_k4_elements_that_a_launch_overwrites_are_valid_again(queue: str) -> None:
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    failed(y)
    double[weir.Range(N)](x, y)
    assert y.tolist() == [2.0] * N
    failed(y)
    double[weir.Range(N - 1)](x, y)  # all but one
    with pytest.raises(weir.OperationError, match="no such file"):
        y.tolist()
    double[weir.Range(N - 1)](x, weir.Out(y))  # the program says so
    assert y.tolist() == [2.0] * N


def test_k1_out_and_in_override_what_was_found(queue: str) -> None:
    @weir.kernel
    def total(i: int, x: Any, y: Any) -> None:
        y[i] = x.sum()  # what a method does is not looked into

    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y, z = weir.ones(10, device=queue), weir.zeros(1, device=queue), weir.zeros(1, device=queue)
    weir.synchronize()
    total[weir.Range(1)].prepare(x, y)
    with Gate() as gate:
        gate.hold(first)
        total[weir.Range(1), first](weir.In(x), y)
        total[weir.Range(1), second](weir.In(x), z).wait()
        control = total[weir.Range(1), second](x, z)
        assert not control.done
    control.wait()
    assert y.tolist() == [10]


def test_k1_declarations_that_the_body_contradicts_are_refused(on: weir.Stream) -> None:
    x, y = weir.ones(N, device=on.device), weir.zeros(N, device=on.device)
    text = message(weir.ArgumentError, lambda: double[weir.Range(N), on](x, weir.In(y)))
    assert "argument y is declared weir.In, and the body writes it: pass weir.InOut(y)" in text
    text = message(weir.ArgumentError, lambda: double[weir.Range(N), on](weir.Out(x), y))
    assert "argument x is declared weir.Out, and the body reads it: pass weir.InOut(x)" in text
    assert x.tolist() == [1] * N
    double[weir.Range(N), on](weir.InOut(x), weir.InOut(y)).wait()
    assert y.tolist() == [2] * N
