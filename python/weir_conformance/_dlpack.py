"""A DLPack producer and a consumer made with ctypes from the protocol's text (DLPack 1.1), for memory of the host."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import Any

CPU = (1, 0)
INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 3, 4, 5, 6
READ_ONLY = 1


class Device(ctypes.Structure):
    """DLDevice."""

    _fields_ = [("type", c_int32), ("id", c_int32)]


class DataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("dtype", DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensor."""


DELETER = ctypes.CFUNCTYPE(None, c_void_p)
Managed._fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""


ManagedVersioned._fields_ = [
    ("major", c_uint32),
    ("minor", c_uint32),
    ("context", c_void_p),
    ("deleter", DELETER),
    ("flags", c_uint64),
    ("tensor", Tensor),
]

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, c_char_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]
_api.PyCapsule_GetDestructor.restype = c_void_p
_api.PyCapsule_GetDestructor.argtypes = [ctypes.py_object]
# A destructor that does nothing: consumers may remove it instead of changing the name.
_DESTRUCTOR = ctypes.cast(_api.Py_IsInitialized, c_void_p)
# A capsule points at its name, so names live as long as the module.
VERSIONED, UNVERSIONED = b"dltensor_versioned", b"dltensor"
_USED = {VERSIONED: b"used_dltensor_versioned", UNVERSIONED: b"used_dltensor"}


@dataclass
class Description:
    """A tensor to export. `data` is the memory; what is None is taken from the other fields."""

    data: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    dtype: tuple[int, int, int] = (FLOAT, 32, 1)
    device: tuple[int, int] = CPU
    byte_offset: int = 0
    flags: int = 0
    version: tuple[int, int] = (1, 1)
    address: int | None = None
    ndim: int | None = None
    has_shape: bool = True


# What was exported stays until the process ends: a consumer may call a deleter at any time.
_kept: list[Any] = []


@dataclass
class Producer:
    """An object with ``__dlpack__``. Keeps all that it exported, to see what became of it.

    Consumers may call deleters while an exception is pending, and no code of Python can run then but the simplest. So a
    deleter only counts, and the capsules' destructor does nothing: what a capsule still owns is seen afterwards.
    """

    what: Description
    versioned: bool = True
    # What __dlpack__ was called with.
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._exports: list[tuple[Any, list[int]]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.what.device

    def __dlpack__(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        most = keywords.get("max_version")
        return self.capsule(self.versioned and most is not None and most[0] >= 1)

    def capsule(self, versioned: bool) -> Any:
        """A new capsule."""
        what = self.what
        shape = (c_int64 * max(len(what.shape), 1))(*what.shape)
        strides = None if what.strides is None else (c_int64 * max(len(what.strides), 1))(*what.strides)
        managed = ManagedVersioned() if versioned else Managed()
        tensor = managed.tensor
        tensor.data = ctypes.addressof(what.data) if what.address is None else what.address
        tensor.device = Device(*what.device)
        tensor.ndim = len(what.shape) if what.ndim is None else what.ndim
        tensor.dtype = DataType(*what.dtype)
        if what.has_shape:
            tensor.shape = ctypes.cast(shape, POINTER(c_int64))
        if strides is not None:
            tensor.strides = ctypes.cast(strides, POINTER(c_int64))
        tensor.byte_offset = what.byte_offset
        if isinstance(managed, ManagedVersioned):
            managed.major, managed.minor = what.version
            managed.flags = what.flags
        count = [0]

        def delete(_: int) -> None:
            count[0] += 1

        deleter = DELETER(delete)
        managed.deleter = deleter
        capsule = _api.PyCapsule_New(ctypes.addressof(managed), VERSIONED if versioned else UNVERSIONED, _DESTRUCTOR)
        self._exports.append((capsule, count))
        _kept.append((managed, shape, strides, deleter, what.data))
        return capsule

    @property
    def mistakes(self) -> str:
        """What is wrong with how exports were given back; empty if nothing is."""
        leaked = twice = 0
        for capsule, count in self._exports:
            has_name = _api.PyCapsule_IsValid(capsule, VERSIONED) or _api.PyCapsule_IsValid(capsule, UNVERSIONED)
            is_unused = has_name and _api.PyCapsule_GetDestructor(capsule) == _DESTRUCTOR.value
            expected = 0 if is_unused else 1
            leaked += count[0] < expected
            twice += count[0] > expected
        found = [f"{leaked} exports leaked"] if leaked else []
        return ", ".join(found + ([f"the deleter of {twice} exports was called too often"] if twice else []))


class Taken:
    """What a consumer sees of a capsule that it took. `close` calls the deleter."""

    def __init__(self, capsule: Any) -> None:
        self.versioned = bool(_api.PyCapsule_IsValid(capsule, VERSIONED))
        name = VERSIONED if self.versioned else UNVERSIONED
        if not _api.PyCapsule_IsValid(capsule, name):
            raise ValueError("no capsule of DLPack")
        self._address = _api.PyCapsule_GetPointer(capsule, name)
        _api.PyCapsule_SetName(capsule, _USED[name])
        kind = ManagedVersioned if self.versioned else Managed
        self.managed = kind.from_address(self._address)
        self.tensor = self.managed.tensor
        self.shape = tuple(self.tensor.shape[i] for i in range(self.tensor.ndim))
        self.strides = tuple(self.tensor.strides[i] for i in range(self.tensor.ndim)) if self.tensor.strides else None
        self.device = (self.tensor.device.type, self.tensor.device.id)
        self.dtype = (self.tensor.dtype.code, self.tensor.dtype.bits, self.tensor.dtype.lanes)
        self.flags = self.managed.flags if self.versioned else 0
        self.version = (self.managed.major, self.managed.minor) if self.versioned else None
        self.address = (self.tensor.data or 0) + self.tensor.byte_offset

    def floats(self) -> list[float]:
        """The elements of one dimension of 32-bit floating-point numbers, in memory of the host."""
        stride = 1 if self.strides is None else self.strides[0]
        return [ctypes.c_float.from_address(self.address + 4 * stride * i).value for i in range(self.shape[0])]

    def close(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(self._address)


def floats(*values: float) -> Any:
    """Memory of the host with these numbers."""
    return (ctypes.c_float * len(values))(*values)
