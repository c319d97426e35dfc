"""Kernels of Python bodies on a GPU, by Numba and libNVVM (K2, K3). test_numba_kernel_driver.py has the fake driver."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any

import numpy as np
import pytest
import weir
from weir.testing import Gate


def found() -> Any:
    """Numba's CUDA, which has no types here; None where it cannot be used."""
    try:
        cuda = importlib.import_module("numba.cuda")
    except ImportError:
        return None
    return cuda if cuda.is_available() else None


cuda = None if "WEIR_CUDA_DRIVER" in os.environ else found()
pytestmark = pytest.mark.skipif(cuda is None, reason="Numba and a GPU are needed: pip install numba-cuda[cu13]")

N = 100_000


@weir.kernel
def axpy(i: int, a: float, x: Any, y: Any) -> None:
    y[i] = a * math.sqrt(x[i]) + y[i]


def test_k3_one_body_gives_the_same_on_both_devices() -> None:
    values = np.linspace(0, 1, N, dtype="float32")
    results = []
    for device in ("cpu", "cuda:0"):
        x, y = weir.array(values, device=device), weir.ones(N, "float32", device=device)
        axpy[weir.Range(N)](2.5, x, y)
        results.append(y.numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32", "complex64", "complex128"],
)
def test_element_types_and_numbers_of_each(dtype: str) -> None:
    @weir.kernel
    def store(i: int, value: Any, x: Any, y: Any) -> None:
        if i == 0:
            y[i] = value
        else:
            y[i] = x[i]

    values = np.arange(6).astype(dtype)
    y = weir.zeros(6, dtype, device="cuda:0")
    store[weir.Range(6)](np.dtype(dtype).type(1), weir.array(values, device="cuda:0"), y)
    values[0] = 1
    np.testing.assert_array_equal(y.numpy(), values)


def test_indices_of_several_dimensions_and_strides() -> None:
    @weir.kernel
    def plane(index: Any, x: Any, y: Any) -> None:
        row, column = index
        y[index] = 10 * x[column, row] + row

    values = np.arange(70.0).reshape(10, 7)
    x, y = weir.array(values, device="cuda:0")[::2], weir.zeros((7, 5), device="cuda:0")
    plane[weir.Range(7, 5)](x, y)
    np.testing.assert_array_equal(y.numpy(), 10 * values[::2].T + np.arange(7)[:, None])


def test_items_and_waiting_for_the_group() -> None:
    assert cuda is not None
    shared_type = importlib.import_module("numba").float32
    module = cuda

    @weir.kernel
    def reverse(item: weir.Item, y: Any) -> None:
        kept = module.shared.array(64, shared_type)
        kept[item.local_id] = y[item.global_id]
        module.syncthreads()
        y[item.global_id] = kept[item.get_local_range(0) - 1 - item.local_id]

    y = weir.arange(640, dtype="float32", device="cuda:0")
    reverse[weir.NdRange(640, 64)](y)
    expected = np.arange(640, dtype="float32").reshape(10, 64)[:, ::-1].ravel()
    np.testing.assert_array_equal(y.numpy(), expected)


def test_o1_a_launch_comes_after_what_writes_its_operands() -> None:
    first, second = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    x, y = weir.ones(N, "float32", device="cuda:0"), weir.zeros(N, "float32", device="cuda:0")
    axpy[weir.Range(N), second].prepare(2.0, x, y)
    weir.Device("cuda:0").synchronize()
    with Gate() as gate:
        gate.hold(first)
        weir.fill(x, 4, stream=first)
        after = axpy[weir.Range(N), second](2.0, x, y)
        assert not after.done
    after.wait()
    assert y.numpy()[[0, N - 1]].tolist() == [4, 4]
