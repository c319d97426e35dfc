"""NumPy's arrays by the buffer protocol (X5, X6, L4): the same arrays, and the same refusals, as by DLPack."""

from __future__ import annotations

import sys
import sysconfig
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir
from eventually import eventually
from exchange_table import Producer
from numpy_versions import IS_NUMPY_2
from weir.testing import Gate

TYPES = [
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


def came_by(x: weir.Array) -> str:
    return weir.explain(x).protocol


@pytest.mark.parametrize("name", TYPES)
def test_x5_each_type_of_numpys_is_the_same_memory(name: str) -> None:
    of = np.arange(6).reshape(2, 3).astype(name)
    x = weir.asarray(of)
    assert (came_by(x), str(x.dtype), x.shape) == ("buffer protocol", name, (2, 3))
    of[1, 2] = 0
    assert x.tolist() == of.tolist()
    weir.fill(x, 1)
    assert of.tolist() == np.ones((2, 3), name).tolist(), "it is over when the call returns"


LAYOUTS: list[Callable[[Any], Any]] = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[::-1],
    lambda a: a[1:, ::-2],
    lambda a: a[1:2],
    lambda a: a[2, 3, ...],
    lambda a: a[:0],
    lambda a: a[:, None],
    lambda a: a.reshape(2, 1, 2, 1, 5, 1),
    lambda a: np.lib.stride_tricks.as_strided(a, (3, 2), (0, 8)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_x5_each_layout_is_that_of_dlpack(layout: Callable[[Any], Any]) -> None:
    of = layout(np.arange(20.0).reshape(4, 5))
    x, y = weir.asarray(of), weir.from_dlpack(of)
    assert came_by(x) == ("buffer protocol" if of.size else "none")
    assert (x.shape, str(x.dtype)) == (y.shape, str(y.dtype))
    for extent, mine, other in zip(x.shape, x.strides, y.strides, strict=True):
        assert mine == other or extent < 2, "strides of one element or none mean nothing"
    assert x.tolist() == of.tolist()
    if of.size:
        assert np.shares_memory(x.numpy(), of)


def unwritable(of: Any) -> Any:
    of.flags.writeable = False
    return of


def test_x1_what_is_read_only_stays_so() -> None:
    of = unwritable(np.arange(3.0))
    x = weir.asarray(of)
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(weir.ArgumentError, match="for reading only"):
        weir.fill(x, 1)
    assert of.tolist() == [0, 1, 2]


def misaligned() -> Any:
    return np.frombuffer(bytearray(33), "float64", 4, offset=1)


class WithItsOwn(np.ndarray[Any, Any]):
    def __dlpack__(self, **_kwargs: Any) -> Any:
        raise BufferError("this class does not hand over")


OTHERS: dict[str, Callable[[], Any]] = {
    "byte order": lambda: np.arange(3).astype(">i8"),
    "a long double": lambda: np.zeros(3, "longdouble"),
    "structure": lambda: np.zeros(3, [("a", "i4"), ("b", "f4")]),
    "text": lambda: np.array(["a"]),
    "objects": lambda: np.array([None]),
    "dates": lambda: np.zeros(3, "datetime64[s]"),
    "40 dimensions": lambda: np.zeros((1,) * 40),
    "a class of its own": lambda: np.arange(3).view(WithItsOwn),
}
if not IS_NUMPY_2:
    del OTHERS["40 dimensions"]  # NumPy 1.26 has at most 32


@pytest.mark.parametrize("what", OTHERS)
def test_x10_what_cannot_be_taken_is_refused_by_an_error_of_weir(what: str) -> None:
    of = OTHERS[what]()
    for take in (weir.from_dlpack, weir.asarray, weir.In):
        with pytest.raises(weir.Error) as refused:
            take(of)
        assert ":" in str(refused.value) or ";" in str(refused.value), "it says what to do"


COPIED: dict[str, Callable[[], Any]] = {
    "misaligned": misaligned,
    "part of a structure": lambda: np.array([(1, 2), (3, 4)], [("a", "f8"), ("b", "i4")])["a"],
    "int4": lambda: np.array([1, -2, 3]).astype(ml_dtypes.int4),
}


@pytest.mark.parametrize("what", COPIED)
def test_x9_elements_that_cannot_be_shared_are_copied(what: str) -> None:
    of = COPIED[what]()
    x = weir.asarray(of)
    assert weir.explain(x).copied
    assert x.numpy().tolist() == of.tolist()
    assert weir.array(of).numpy().tolist() == of.tolist()
    with pytest.raises(weir.CopyError, match="copy=False"):
        weir.asarray(of, copy=False)
    for use in (weir.In, weir.Out, weir.share, lambda x: weir.fill(x, 1), lambda x: weir.borrow(x).__enter__()):
        with pytest.raises(weir.CopyError, match="cop"):
            use(of)
    with pytest.raises(weir.CopyError, match=r"weir\.asarray\(x\)"):
        weir.In(of)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_x5_types_of_ml_dtypes_are_the_same_memory(name: str) -> None:
    of = np.zeros((4, 4), getattr(ml_dtypes, name))[1:, ::2]
    x = weir.asarray(of, copy=False)
    assert (str(x.dtype), x.shape, x.strides, came_by(x)) == (name, of.shape, of.strides, "buffer protocol")
    weir.copy(x, weir.array(np.full(of.shape, 2, of.dtype)))
    assert (of.astype(float) == 2).all()
    of[0, 0] = 1
    assert x.numpy()[0, 0] == 1
    weir.In(of)
    of.flags.writeable = False
    for read_only in (weir.asarray(of), weir.asarray(of, exclusive=True)):
        assert not read_only.numpy().flags.writeable
        with pytest.raises(weir.ArgumentError, match="for reading only"):
            weir.copy(read_only, weir.array(of))


def test_l4_an_array_of_ml_dtypes_lives_as_long_as_its_memory_is_used() -> None:
    class Kept(np.ndarray[Any, Any]):
        pass

    of = np.ones(3, ml_dtypes.bfloat16).view(Kept)
    gone = weakref.ref(of)
    x = weir.asarray(of)
    del of
    assert x.tolist() == [1, 1, 1]
    assert gone() is not None
    del x
    eventually(lambda: gone() is None)


class Plain(np.ndarray[Any, Any]):
    pass


class ChangedLater(np.ndarray[Any, Any]):
    pass


def test_x5_classes_derived_from_numpys_are_asked_for_what_they_change() -> None:
    assert came_by(weir.asarray(np.arange(3).view(Plain))) == "buffer protocol"
    assert came_by(weir.asarray(np.asmatrix([[1, 2]]))) == "buffer protocol"
    assert came_by(weir.asarray(np.ma.masked_array([1, 2], [False, True]))) == "DLPack"
    of = np.arange(3).view(ChangedLater)
    assert came_by(weir.asarray(of)) == "buffer protocol"
    ChangedLater.__dlpack__ = WithItsOwn.__dlpack__  # type: ignore[assignment, method-assign]
    with pytest.raises(BufferError, match="does not hand over"):
        weir.asarray(of)


def test_x9_arguments_mean_what_they_mean_elsewhere() -> None:
    of = np.arange(3.0)
    assert weir.asarray(of, dtype="float64", device="cpu", copy=False).tolist() == [0, 1, 2]
    assert str(weir.asarray(of, dtype="float32").dtype) == "float32"
    assert str(weir.asarray(of, device="sim:0").device) == "sim:0"
    assert not np.shares_memory(weir.asarray(of, copy=True).numpy(), of)
    with pytest.raises(weir.CopyError, match="element type"):
        weir.asarray(of, dtype="float32", copy=False)


def is_over(condition: Callable[[], bool]) -> bool:
    """Whether it is so now; where there is no GIL, whether it is so after some later call."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        eventually(condition)
    return condition()


def test_l4_the_array_goes_with_the_last_use_of_its_memory() -> None:
    of = np.arange(3.0).view(Plain)
    gone = weakref.ref(of)
    before = sys.getrefcount(of)
    x = weir.asarray(of)
    assert sys.getrefcount(of) == before + 1
    part = x[1:]
    del x
    assert sys.getrefcount(of) == before + 1
    with pytest.raises(ValueError, match="resize"):
        of.resize(100)
    del of
    assert gone() is not None
    del part
    assert is_over(lambda: gone() is None), "at once: nothing is pending, and this thread has the GIL"


def test_l4_the_array_stays_while_work_is_pending() -> None:
    of = np.arange(3.0).view(Plain)
    gone = weakref.ref(of)
    s = weir.Stream()
    gate = Gate()
    gate.hold(s)
    x = weir.asarray(of, exclusive=True)
    weir.fill(x, 7, stream=s)
    del x, of
    assert gone() is not None
    seen = gone()
    assert seen is not None
    assert seen.tolist() == [0, 1, 2]
    gate.open()
    s.synchronize()
    assert seen.tolist() == [7, 7, 7]
    del seen
    eventually(lambda: gone() is None)


def test_x6_arrays_of_overlapping_memory_are_over_when_their_calls_return() -> None:
    of = np.zeros(4)
    x, y = weir.asarray(of[:3]), weir.asarray(of[1:])
    s, t = weir.Stream(), weir.Stream()
    for k in range(1, 20):
        weir.fill(x, k, stream=s)
        weir.fill(y, -k, stream=t)
        assert of.tolist() == [k, -k, -k, -k]


def test_l4_an_array_that_goes_with_an_exception_leaves_it_alone() -> None:
    of = Producer()
    with pytest.raises(ZeroDivisionError):
        print(weir.asarray(of.cls()), 1 // 0)
    assert is_over(lambda: of.deleted == 1), "at once, by a function of Python's, which began without an exception"
