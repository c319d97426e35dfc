"""Memory of Python's own objects by the buffer protocol (X1, X5, L4): shared, kept, and given back."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import struct
import sys
from collections.abc import Callable
from typing import Any

import pytest
import weir
from test_buffer_import import came_by

SOURCES: dict[str, tuple[Callable[[], Any], str, tuple[int, ...]]] = {
    "bytearray": (lambda: bytearray(8), "uint8", (8,)),
    "memoryview": (lambda: memoryview(bytearray(48)).cast("d", (2, 3)), "float64", (2, 3)),
    "part": (lambda: memoryview(array.array("i", [0] * 9))[1::3], "int32", (3,)),
    "backwards": (lambda: memoryview(array.array("h", [0] * 4))[::-1], "int16", (4,)),
    "array": (lambda: array.array("f", [0, 0]), "float32", (2,)),
    "mmap": (lambda: mmap.mmap(-1, 8), "uint8", (8,)),
    "ctypes": (lambda: ((ctypes.c_int64 * 3) * 2)(), "int64", (2, 3)),
    "ctypes text": (lambda: ctypes.create_string_buffer(3), "uint8", (3,)),
    "little endian": (lambda: ctypes.c_uint16.__ctype_le__(), "uint16", ()),
}


@pytest.mark.parametrize("name", SOURCES)
def test_x5_memory_is_shared(name: str) -> None:
    make, dtype, shape = SOURCES[name]
    of = make()
    for copy in (None, False):
        x = weir.asarray(of, copy=copy)
        assert (came_by(x), str(x.dtype), x.shape, x.device.kind) == ("buffer protocol", dtype, shape, "cpu")
        weir.fill(x, 1)
    assert memoryview(of).tobytes() == x.numpy().tobytes()
    assert x.numpy().sum() == x.size
    copied = weir.asarray(of, copy=True)
    weir.fill(x, 2)
    assert copied.numpy().sum() == copied.size


def test_x5_what_python_writes_is_seen() -> None:
    of = array.array("d", [1, 2, 3])
    x = weir.asarray(of)
    of[1] = 7
    assert (x + x).tolist() == [2, 14, 6]


def test_x1_what_is_read_only_stays_so() -> None:
    x = weir.asarray(memoryview(b"abc"))
    assert (x.tolist(), came_by(x)) == ([97, 98, 99], "buffer protocol")
    with pytest.raises(weir.ArgumentError, match="for reading only"):
        weir.fill(x, 1)


def test_l4_memory_is_kept_and_given_back() -> None:
    of = bytearray(64)
    x = weir.asarray(of)
    with pytest.raises(BufferError):
        of.append(1)  # Python says that it is in use
    before = sys.getrefcount(of)
    y = x + x
    del x
    gc.collect()
    weir.synchronize()
    assert y.tolist() == [0] * 64
    of.append(1)  # given back
    assert sys.getrefcount(of) == before - 1


def test_an_object_may_go_before_its_memory() -> None:
    x = weir.asarray(memoryview(array.array("q", range(1000))))
    gc.collect()
    assert x.sum().item() == 499_500


def test_what_cannot_be_shared_is_copied() -> None:
    pytest.importorskip("numpy", reason="NumPy is not installed: pip install numpy")
    misaligned = memoryview(bytearray(1) + struct.pack("dd", 1.5, 2))[1:].cast("d")
    x = weir.asarray(misaligned)
    assert (x.tolist(), came_by(x)) == ([1.5, 2], "elements")
    with pytest.raises(weir.CopyError, match="it has to be copied, and copy=False forbids that"):
        weir.asarray(misaligned, copy=False)
    swapped = (ctypes.c_int32.__ctype_be__ * 2)(1, 2)
    with pytest.raises(weir.ArgumentTypeError, match="have another byte order than this machine"):
        weir.asarray(swapped)


def test_texts_and_numbers_are_no_memory() -> None:
    for of in (b"abc", "abc"):
        with pytest.raises(weir.Error):
            weir.asarray(of)
        with pytest.raises(weir.CopyError):
            weir.asarray(of, copy=False)


def test_objects_without_elements() -> None:
    x = weir.asarray(bytearray())
    assert (x.shape, x.tolist()) == ((0,), [])
