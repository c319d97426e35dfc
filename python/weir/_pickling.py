"""The functions that pickled objects name, by which they are made again."""

from __future__ import annotations

from weir._weir import Array, _array_from_bytes


def array_from_bytes(elements: bytes, dtype: str, shape: tuple[int, ...], device: str) -> Array:
    return _array_from_bytes(elements, dtype, shape, device)
