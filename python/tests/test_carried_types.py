"""Element types without arithmetic: they are made, copied, moved and exchanged with NumPy as ml_dtypes has them."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir

WHOLE = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
PACKED = {
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
    "int2": 2,
    "int4": 4,
    "uint2": 2,
    "uint4": 4,
}


def numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name))


def elements(name: str, count: int) -> Any:
    """An array of NumPy's with all values of the type in turn."""
    bits = PACKED.get(name, 8)
    values = (np.arange(count) * 5 + 3) % 2**bits
    if name in ("int2", "int4"):
        values = values - 2 ** (bits - 1)
        return values.astype(np.int8).astype(numpy_type(name))
    return values.astype(np.uint8).view(numpy_type(name))


def raw(x: Any) -> bytes:
    return bytes(np.ascontiguousarray(x).view(np.uint8).tobytes())


@pytest.mark.parametrize("name", [*WHOLE, *PACKED])
def test_an_array_has_the_type_that_was_asked_for(name: str, array_device: str) -> None:
    for spelling in (name, numpy_type(name), getattr(ml_dtypes, name)):
        x = weir.empty((3, 4), spelling, device=array_device)
        assert x.dtype == numpy_type(name)
        assert str(x.dtype) == name
        assert name in repr(x)
        assert x.nbytes == (12 * PACKED.get(name, 8) + 7) // 8


@pytest.mark.parametrize("name", [*WHOLE, *PACKED])
@pytest.mark.parametrize("count", [0, 1, 7, 64])
def test_elements_go_from_numpy_and_back(name: str, count: int, array_device: str) -> None:
    a = elements(name, count)
    x = weir.array(a, device=array_device)
    assert x.dtype == a.dtype
    back = x.numpy()
    assert back.dtype == a.dtype
    assert back.shape == a.shape
    assert raw(back) == raw(a)
    assert raw(x.numpy(copy=True)) == raw(a)


@pytest.mark.parametrize("name", PACKED)
def test_packed_elements_begin_in_the_lowest_bits(name: str) -> None:
    bits = PACKED[name]
    a = elements(name, 13)
    number = sum((int(one) & (2**bits - 1)) << (i * bits) for i, one in enumerate(raw(a)))
    assert bytes(weir.array(a)) == number.to_bytes((13 * bits + 7) // 8, "little")


@pytest.mark.parametrize("name", WHOLE)
def test_a_view_of_whole_bytes_is_the_same_memory(name: str) -> None:
    x = weir.array(elements(name, 12), device="cpu").reshape(3, 4)
    view = x[:, ::2].numpy(copy=False)
    assert view.dtype == numpy_type(name)
    view[...] = elements(name, 24)[-6:].reshape(3, 2)
    assert raw(x.numpy()[:, ::2]) == raw(elements(name, 24)[-6:])


def test_packed_elements_have_no_view() -> None:
    x = weir.array(elements("int4", 4))
    with pytest.raises(weir.CopyError):
        x.numpy(copy=False)
    with pytest.raises(BufferError):
        memoryview(x)
    with pytest.raises(weir.ArgumentTypeError, match="4 bits"):
        _ = x.itemsize


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int4"])
def test_arithmetic_numbers_and_conversions_are_refused(name: str, array_device: str) -> None:
    x = weir.array(elements(name, 1), device=array_device)
    calls: list[Any] = [
        lambda: x + x,
        lambda: x + 1,
        lambda: weir.ones(1, device=array_device) * x,
        lambda: x.sum(),
        lambda: x.astype("float32"),
        lambda: x.item(),
        lambda: x.tolist(),
        lambda: float(x),
        lambda: bool(x),
        lambda: weir.zeros(3, name, device=array_device),
        lambda: weir.array([1, 2], name, device=array_device),
    ]
    for call in calls:
        with pytest.raises(weir.ArgumentTypeError):
            call()


def test_an_opaque_type_is_carried(array_device: str) -> None:
    x = weir.empty((2, 3), "opaque24", device=array_device)
    assert x.dtype == "opaque24"
    assert (x.nbytes, x.itemsize) == (18, 3)
    assert len(bytes(x[:, 1:])) == 12
    with pytest.raises(weir.ArgumentTypeError, match="opaque24"):
        x.numpy(copy=True)


@pytest.mark.parametrize("name", ["float8_e5m2", "uint4", "float6_e2m3fn"])
def test_pickling_keeps_the_bits(name: str) -> None:
    x = weir.array(elements(name, 9))
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype == x.dtype
    assert bytes(again) == bytes(x)


@pytest.mark.parametrize("name", ["float8_e5m2", "int4"])
def test_without_ml_dtypes_the_package_is_named(name: str) -> None:
    program = f"""
        import sys

        sys.modules["ml_dtypes"] = None
        import weir

        x = weir.empty(4, "{name}")
        assert x.dtype == "{name}", x.dtype
        try:
            x.numpy()
        except weir.MissingLibrary as error:
            assert "pip install ml_dtypes" in str(error), error
        else:
            raise AssertionError("nothing was raised")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
