"""Inputs that break the protocols of the exchange, by Hypothesis (B6, B7, B10): an error of Weir's, or a right array.

The same examples each time. WEIR_TEST_HOSTILE_INPUTS says how many: `./run test --long` sets it to 50000.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import weir
from conftest import HAS_CUDA
from eventually import eventually
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from weir_conformance import _dlpack
from weir_conformance._dlpack import UNVERSIONED, VERSIONED, Description, Producer

INPUTS = int(os.environ.get("WEIR_TEST_HOSTILE_INPUTS", "2000"))
BATCHES = max(1, INPUTS // 5000)  # a test is one batch, so that none takes minutes


@pytest.fixture(params=range(BATCHES))
def batch(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def hostile(share: float, batch: int) -> Callable[[Any], Any]:
    """So large a part of all inputs of a batch."""

    def decorate(test: Any) -> Any:
        return seed(batch)(
            settings(
                max_examples=max(1, int(INPUTS / BATCHES * share)),
                database=None,
                deadline=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            )(test)
        )

    return decorate


class OwnError(Exception):
    """What hostile objects raise themselves, which Weir is to let through or to replace with an error of its own."""


ALLOWED = (weir.Error, OwnError)


class Raises:
    """An object of which every use raises."""

    def _raise(self, *_: object, **__: object) -> Any:
        raise OwnError

    __index__ = __int__ = __float__ = __bool__ = __iter__ = __len__ = __getitem__ = _raise
    __eq__ = __call__ = _raise  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]
    cuda_stream = property(_raise)
    __cuda_stream__ = property(_raise)


class UnknownRepr:
    """Such an object is in no message by its own words."""

    def __init__(self, says: str | None) -> None:
        self.says = says

    def __repr__(self) -> str:
        if self.says is None:
            raise OwnError
        return self.says


class Stream:
    """Says by one of the attributes that streams have what its handle is."""

    def __init__(self, name: str, value: object, is_method: bool) -> None:
        self.__dict__[name] = (lambda: value) if is_method else value


_capsules = ctypes.pythonapi
_destructor = ctypes.cast(_capsules.Py_IsInitialized, ctypes.c_void_p)
_memory = ctypes.create_string_buffer(512)
_names = [b"dltensor", b"dltensor_versioned", b"used_dltensor", b"arrow_schema", b"dlpack_exchange_api", b"x", None]


def empty_capsule(name: bytes | None) -> Any:
    """A capsule of none of the names that are for tensors: those would be believed."""
    return _capsules.PyCapsule_New(ctypes.addressof(_memory), name, _destructor)


# Numbers that are no streams; 1 and 2 are the default streams.
numbers = st.sampled_from([0, 1, 2, -1, -2, -17, 1 << 31, 1 << 63, 1 << 64, -(1 << 63), -(1 << 64), 10**30])
things: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, -2, 1 << 64, -(1 << 70)]),
    st.sampled_from([1.0, float("nan"), 1j, "x", "cpu", "cuda:99", "sim:0", "auto", "", b"x", "\udc80", "float32"]),
    st.sampled_from(
        [(), (1,), (1, 0), (2, 0), [1, 0], (1, 0, 0), (99, 1), ("a", 0), (1 << 40, 1 << 70), {}, {1: 2}, set()]
    ),
    st.sampled_from([object, int, np.float32, weir.Array, weir, np]),
    st.builds(object),
    st.builds(Raises),
    st.builds(UnknownRepr, st.sampled_from([None, "\udc80", "x" * 1000])),
    st.builds(lambda v: np.int64(v), st.integers(-3, 3)),
    st.builds(lambda: np.zeros(3, "float32")),
    st.builds(lambda: np.zeros(3, "object")),
    st.builds(lambda: np.zeros(2, "datetime64[s]")),
    st.builds(lambda: weir.zeros(3, "float32")),
    st.builds(empty_capsule, st.sampled_from(_names[2:])),
    st.builds(
        Stream,
        st.sampled_from(["__cuda_stream__", "cuda_stream", "ptr", "handle", "sycl_queue"]),
        st.one_of(
            numbers.filter(lambda n: n <= 2), st.sampled_from([None, "x", 1.5, (0,), (0, 0), (0, -1), (0, 0, 0), {}])
        ),
        st.booleans(),
    ),
)

# What a tensor says. Most parts are right, so that the checks behind the first one are reached as well.


def mostly(right: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(*[right] * 7, wrong)


COUNT = 64  # floats in the memory of an example
extents = mostly(st.integers(0, 4), st.sampled_from([-1, 1 << 20, 1 << 40, (1 << 63) - 1, -(1 << 63), 7]))
strides = mostly(st.integers(-3, 8), st.sampled_from([1 << 20, -(1 << 40), (1 << 63) - 1, -(1 << 63), 1 << 61]))


@st.composite
def descriptions(draw: Any) -> Description:
    shape = tuple(draw(st.lists(extents, max_size=5)))
    memory = (ctypes.c_float * COUNT)(*range(COUNT))
    return Description(
        memory,
        shape,
        draw(st.one_of(st.none(), st.tuples(*[strides] * len(shape)))),
        dtype=draw(
            mostly(
                st.just((2, 32, 1)),
                st.tuples(
                    st.integers(0, 255),
                    st.sampled_from([0, 1, 4, 8, 16, 32, 64, 128, 255]),
                    st.sampled_from([0, 1, 4, 65535]),
                ),
            )
        ),
        device=draw(mostly(st.just((1, 0)), st.tuples(st.integers(-3, 20), st.sampled_from([0, -1, 5, 1 << 30])))),
        byte_offset=draw(mostly(st.sampled_from([0, 4, 128]), st.sampled_from([1, 1 << 20, 1 << 63, (1 << 64) - 4]))),
        flags=draw(mostly(st.integers(0, 3), st.integers(0, (1 << 64) - 1))),
        version=draw(
            mostly(st.sampled_from([(1, 0), (1, 3), (1, 99)]), st.sampled_from([(0, 8), (2, 0), (1 << 31, 7)]))
        ),
        address=draw(mostly(st.just(ctypes.addressof(memory) + 128), st.sampled_from([0, 1, 8]))),
        ndim=draw(mostly(st.none(), st.sampled_from([-1, -(1 << 31), 0, 1025, (1 << 31) - 1]))),
        has_shape=draw(mostly(st.just(True), st.just(False))),
    )


def elements_of(what: Description) -> np.ndarray | None:
    """The elements that it describes, if they are floats that lie within its memory."""
    shape = what.shape[: len(what.shape) if what.ndim is None else max(what.ndim, 0)]
    if (
        what.dtype != (2, 32, 1)
        or what.device != (1, 0)
        or min(shape, default=0) < 0
        or not (what.has_shape or not shape)
    ):
        return None
    if int(np.prod(shape, dtype=object)) > 10_000:  # strides of 0 make room for any number of elements
        return None
    if what.strides is None:
        steps = tuple(int(np.prod(shape[axis + 1 :], dtype=object)) for axis in range(len(shape)))
    else:
        steps = what.strides[: len(shape)]
    assert what.address is not None
    first = (what.address + what.byte_offset - ctypes.addressof(what.data)) // 4
    if 0 in shape:
        return np.empty(shape, "float32") if max(shape) < 1000 else None
    ends = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
    low, high = first + sum(min(end, 0) for end in ends), first + sum(max(end, 0) for end in ends)
    if low < 0 or high >= COUNT or what.byte_offset % 4 != 0:
        return None
    indices = np.full(shape, first, dtype=int)
    for axis, step in enumerate(steps):
        indices += np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))]) * step
    return np.arange(COUNT, dtype="float32")[indices]


RIGHT, USED = object(), object()  # what the description says; a capsule that was consumed


class Hostile:
    """An array of a package that breaks the protocols in the way that an example says."""

    def __init__(
        self,
        what: Description,
        versioned: bool,
        keywords: str,
        device: object,
        answer: object,
        attributes: dict[str, Any],
    ) -> None:
        self.producer = Producer(what, versioned)
        self.keywords, self.device, self.answer = keywords, device, answer
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __dlpack_device__(self) -> Any:
        if isinstance(self.device, Raises):
            raise OwnError
        return self.producer.what.device if self.device is RIGHT else self.device

    def __dlpack__(self, *positional: Any, **keywords: Any) -> Any:
        if self.keywords == "none" and keywords:
            raise TypeError("no keywords")
        if self.keywords == "stream" and keywords.keys() - {"stream"}:
            raise TypeError("stream alone")
        if self.keywords == "raises":
            raise OwnError
        if self.keywords == "type error":
            raise OwnTypeError
        if self.answer is RIGHT:
            return self.producer.__dlpack__(**keywords)
        if self.answer is USED:
            capsule = self.producer.capsule(True)
            with contextlib.suppress(weir.Error):
                weir.from_dlpack(capsule)
            return capsule
        return self.answer


class OwnTypeError(OwnError, TypeError):
    """A TypeError from within `__dlpack__`, which is not about its keywords."""


hostiles = st.builds(
    Hostile,
    descriptions(),
    st.booleans(),
    mostly(st.sampled_from(["all", "none", "stream"]), st.sampled_from(["raises", "type error"])),
    mostly(st.just(RIGHT), things),
    mostly(st.just(RIGHT), st.one_of(st.just(USED), things)),
    mostly(
        st.just({}),
        st.dictionaries(
            st.sampled_from(["__cuda_array_interface__", "__array_interface__", "is_neg", "requires_grad", "shape"]),
            things,
            max_size=2,
        ),
    ),
)


@contextlib.contextmanager
def nothing_leaks() -> Iterator[Callable[[Hostile], None]]:
    """Afterwards nothing is left of the hostile objects that the block was called with, nor of memory of Weir's."""
    made: weakref.WeakSet[Hostile] = weakref.WeakSet()
    gc.collect()
    weir.synchronize()
    before = weir.memory.stats("cpu")["live"]

    def watch(one: Hostile) -> None:
        made.add(one)

    yield watch
    eventually(lambda: len(made) == 0)
    eventually(lambda: weir.memory.stats("cpu")["live"] == before)


def expect_given_back(producer: Producer, since: int) -> None:
    """Each export was given back once. Forgets those that were made since then."""
    if producer.mistakes:
        eventually(lambda: producer.mistakes == "")
    del _dlpack._kept[since:]


def looked_at(made: weir.Array, what: Description) -> None:
    """What an array says of itself makes sense, and its elements are right if they are in the memory."""
    assert repr(made)
    assert made.nbytes >= 0
    assert len(made.shape) == len(made.strides)
    assert str(weir.explain(made))
    expected = elements_of(what)
    if expected is not None and made.dtype == "float32":
        np.testing.assert_array_equal(np.array(made.numpy(copy=True)), expected)


seen = {"taken": 0, "refused": 0}


def test_b10_hostile_tensors_are_refused_or_right(batch: int) -> None:
    seen.update(taken=0, refused=0)
    with nothing_leaks() as watch:

        @hostile(0.5, batch)
        @given(
            hostiles, st.sampled_from(["asarray", "from_dlpack", "capsule", "exclusive", "borrow", "operator", "In"])
        )
        def run(one: Hostile, how: str) -> None:
            watch(one)
            exports = len(_dlpack._kept)
            what = one.producer.what
            calls: dict[str, Callable[[], Any]] = {
                "asarray": lambda: weir.asarray(one),
                "exclusive": lambda: weir.asarray(one, exclusive=True),
                "from_dlpack": lambda: weir.from_dlpack(one),
                "capsule": lambda: weir.from_dlpack(one.producer.capsule(one.producer.versioned)),
                "In": lambda: weir.In(one).array,
            }
            try:
                if how in calls:
                    looked_at(calls[how](), what)
                elif how == "borrow":
                    with weir.borrow(one) as (view,):
                        looked_at(view, what)
                elif elements_of(what) is not None:  # it reads, as far as the tensor says that it may
                    assert isinstance(weir.ones((), "float32") + one, weir.Array)
                seen["taken"] += 1
            except ALLOWED:
                seen["refused"] += 1
            except TypeError as error:
                if "no keywords" not in str(error) and "stream alone" not in str(error):  # its own
                    raise
                seen["refused"] += 1
            expect_given_back(one.producer, exports)

        run()
    assert seen["taken"] > 0
    assert seen["refused"] > 0


keywords = st.dictionaries(
    st.sampled_from(["stream", "max_version", "dl_device", "copy", "x"]),
    mostly(st.sampled_from([None, -1, (1, 0), (0, 8), (1, 0), True, False]), things),
    max_size=4,
)


@pytest.mark.parametrize("place", ["cpu", *(["cuda:0"] if HAS_CUDA else [])])
def test_b1_exports_asked_for_in_any_way(place: str, batch: int) -> None:
    seen.update(taken=0, refused=0)
    x = weir.arange(6.0, device=place)[1:]
    expected = [1.0, 2.0, 3.0, 4.0, 5.0]
    with nothing_leaks():

        @hostile(0.125, batch)
        @given(keywords, st.sampled_from(["dropped", "taken", "twice"]))
        def run(given_: dict[str, Any], then: str) -> None:
            try:
                capsule = x.__dlpack__(**given_)
            except ALLOWED:
                seen["refused"] += 1
                return
            seen["taken"] += 1
            if then == "dropped":
                return
            made = weir.from_dlpack(capsule)
            assert made.numpy(copy=True).tolist() == expected
            if then == "twice":
                with pytest.raises(weir.ExchangeError, match="consumed before"):
                    weir.from_dlpack(capsule)

        run()
    assert x.numpy(copy=True).tolist() == expected
    assert seen["taken"] > 0
    assert seen["refused"] > 0


def test_b10_arguments_that_are_anything(batch: int) -> None:
    """Every call of the exchange, with whatever there is as its arguments."""
    x = weir.arange(4.0)
    arguments = st.dictionaries(st.sampled_from(["device", "copy", "stream", "dtype", "exclusive"]), things, max_size=3)

    def borrowed(one: Any, write: Any, stream: Any) -> None:
        with weir.borrow(x, one, write=write, stream=stream):
            pass

    with nothing_leaks():

        @hostile(0.25, batch)
        @given(st.integers(0, 11), things, things, arguments)
        def run(which: int, one: Any, other: Any, given_: dict[str, Any]) -> None:
            calls: list[Callable[[], Any]] = [
                lambda: weir.asarray(one, **given_),
                lambda: weir.asarray(x, **given_),
                lambda: weir.from_dlpack(one, **given_),
                lambda: weir.from_dlpack(x, **given_),
                lambda: weir.adopt(one, device=other),
                lambda: weir.adopt(one, owner=other),
                lambda: x.used_on(one, exclusive=other),
                lambda: borrowed(one, other, None),
                lambda: borrowed(x, [], one),
                lambda: weir.stream_of(one),
                lambda: weir.share(one),
                lambda: weir.fft.fft(one, out=other),
            ]
            try:
                with contextlib.suppress(*ALLOWED):
                    calls[which]()
            except BufferError as error:
                if "DLPack only supports" not in str(error):  # NumPy's
                    raise

        run()
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.skipif(not HAS_CUDA, reason="the interface is for memory of CUDA devices")
def test_b10_hostile_interfaces_are_refused_or_right(cuda: weir.Device, batch: int) -> None:
    seen.update(taken=0, refused=0)
    memory = weir.zeros(COUNT, "float32", device=cuda)
    pointer = memory.__cuda_array_interface__["data"][0]
    stream = weir.Stream(cuda)  # lives as long as its handle is used
    handle = stream.handle
    right: dict[str, st.SearchStrategy[Any]] = {
        "shape": st.lists(extents, max_size=4).map(tuple),
        "typestr": st.sampled_from(["<f4", "<f8", "|u1"]),
        "data": st.just((pointer, False)),
        "version": st.sampled_from([2, 3]),
    }
    more = {
        "strides": st.one_of(st.none(), st.lists(st.sampled_from([4, 8, -4, 3, 1 << 62]), max_size=4).map(tuple)),
        "stream": st.sampled_from([None, 1, 2, handle]),
        "mask": st.none(),
        "descr": things,
    }
    odd = {
        "shape": st.lists(things, max_size=3).map(tuple),
        "typestr": st.sampled_from([">f4", "<V7", "<f", "f4", "<f16", "<M8[s]", "\0"]),
        "data": st.tuples(st.sampled_from([0, 8, -1, 1 << 64, None, "x", 1.5]), things),
        "stream": things,
    }

    class OfInterface:
        def __init__(self, interface: Any) -> None:
            self.__cuda_array_interface__ = interface

    @st.composite
    def interfaces(draw: Any) -> Any:
        said = {key: draw(value) for key, value in right.items()}
        for key in draw(st.lists(st.sampled_from(sorted(more)), max_size=3)):
            said[key] = draw(more[key])
        change = draw(st.integers(0, 3))
        if change == 0:
            key = draw(st.sampled_from(sorted(odd)))
            said[key] = draw(odd[key])
        elif change == 1:
            key = draw(st.sampled_from(sorted([*right, *more])))
            said[key] = draw(things)
        elif change == 2:
            said.pop(draw(st.sampled_from(sorted(right))), None)
        return said if draw(st.integers(0, 15)) else draw(things)

    @hostile(0.125, batch)
    @given(interfaces(), st.booleans())
    def run(interface: Any, exclusive: bool) -> None:
        try:
            made = weir.asarray(OfInterface(interface), exclusive=exclusive)
        except ALLOWED:
            seen["refused"] += 1
            return
        seen["taken"] += 1
        assert repr(made)
        assert made.shape == tuple(interface["shape"])

    run()
    assert seen["taken"] > 0
    assert seen["refused"] > 0


def test_names_of_capsules_that_are_made_here_are_those_of_the_protocol() -> None:
    assert (UNVERSIONED, VERSIONED) == (b"dltensor", b"dltensor_versioned")
