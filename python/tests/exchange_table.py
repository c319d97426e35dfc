"""DLPack's C exchange table by ctypes: a consumer that calls one, and a producer that has one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

P = ctypes.c_void_p
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = P
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [P, ctypes.c_char_p, P]


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", P),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""


DELETER = ctypes.PYFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = (
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", P),
    ("deleter", DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
)
MANAGED = ctypes.POINTER(Managed)
SET_ERROR = ctypes.PYFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", P),
        ("allocate", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(MANAGED), P, SET_ERROR)),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(MANAGED))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, MANAGED, ctypes.POINTER(P))),
        ("borrow", P),
        ("current_work_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(P))),
    )


def table_of(cls: type) -> Table:
    """The table of a class, as a consumer finds it."""
    return Table.from_address(_capsule_pointer(cls.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))  # type: ignore[attr-defined]


def taken(table: Table, x: object) -> Any:
    """What the table hands over of an object: a pointer to a Managed, which the caller deletes."""
    made = MANAGED()
    assert table.from_object(x, ctypes.byref(made)) == 0
    return made


def deleted(managed: Any) -> None:
    managed.contents.deleter(managed)


def work_stream(table: Table, device_type: int, device_id: int = 0) -> int | None:
    handle = P()
    assert table.current_work_stream(device_type, device_id, ctypes.byref(handle)) == 0
    return handle.value


# A table stays as long as the process, as DLPack says: consumers ask it for streams after its arrays are gone.
_FOR_EVER: list[object] = []


class Producer:
    """Makes a class whose objects are float arrays on the CPU, or lie elsewhere, and hand over by a table alone."""

    def __init__(
        self,
        count: int = 4,
        *,
        pointer: int = 0,
        device_type: int = 1,
        version: tuple[int, int] = (1, 3),
        methods: bool = True,
    ) -> None:
        self.elements = (ctypes.c_float * count)(*range(count))
        self.shape = (ctypes.c_int64 * 1)(count)
        self.strides = (ctypes.c_int64 * 1)(1)
        self.deleted = 0
        self.exported = 0
        self.stream = 0
        self.asked: list[int] = []
        self.fails = False
        self.flags = 0
        self._pointer = pointer or ctypes.addressof(self.elements)
        self._device_type = device_type
        self._deleter = DELETER(self._delete)
        self._kept: list[Managed] = []
        self.table = Table()
        self.table.major, self.table.minor = version
        types = dict(Table._fields_)
        self._functions: list[Callable[..., int]] = [
            types["from_object"](self._from_object),
            types["current_work_stream"](self._current_work_stream),
        ]
        _FOR_EVER.append(self)
        self.table.from_object, self.table.current_work_stream = self._functions  # type: ignore[assignment]
        capsule = _new_capsule(ctypes.addressof(self.table), b"dlpack_exchange_api", None)

        def refused(_: object, **_keywords: object) -> object:
            raise BufferError("the method says why")

        has: dict[str, Any] = {"__module__": f"producer_{id(self)}", "__dlpack_c_exchange_api__": capsule}
        if methods:
            has |= {"__dlpack__": refused, "__dlpack_device__": lambda _: (device_type, 0)}
        self.cls = type("TableArray", (), has)

    def _delete(self, _managed: Any) -> None:
        self.deleted += 1

    def _from_object(self, _x: object, out: Any) -> int:
        if self.fails:
            return -1
        made = Managed()
        made.major, made.minor, made.deleter, made.flags = 1, 3, self._deleter, self.flags
        t = made.tensor
        t.data, t.device_type, t.ndim, t.code, t.bits, t.lanes = self._pointer, self._device_type, 1, 2, 32, 1
        t.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        t.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        self._kept.append(made)
        out[0] = ctypes.pointer(made)
        self.exported += 1
        return 0

    def _current_work_stream(self, _type: int, device_id: int, out: Any) -> int:
        self.asked.append(device_id)
        out[0] = self.stream
        return 0
