"""The cases. Each is a function of a producer, a consumer, or both, and has the name of the scenario that it is.

A case returns an Outcome. NotOffered that it raises means that the library lacks something that the case needs. Any
other exception is "wrong error".
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weir_conformance._clients import COUNT, Client, NotOffered
from weir_conformance._dlpack import FLOAT, READ_ONLY, Description, Producer, Taken, floats
from weir_conformance._gate import watched
from weir_conformance._outcome import Outcome, Verdict

# What a protocol's function may raise to say no.
REFUSALS = (BufferError, ValueError, TypeError, NotImplementedError, RuntimeError)

# DLPack's types of devices whose memory is the host's: the CPU, and pinned memory.
_OF_THE_HOST = (1, 3)

_Run = Callable[..., Outcome]


@dataclass(frozen=True)
class Case:
    """A case, what it needs, and in a line what it shows."""

    name: str
    run: _Run
    about: str
    needs_producer: bool
    needs_consumer: bool
    devices: tuple[str, ...] = ("cpu", "cuda")


CASES: list[Case] = []


def _case(
    name: str, *, producer: bool = False, consumer: bool = False, devices: tuple[str, ...] = ("cpu", "cuda")
) -> Callable[[_Run], _Run]:
    def add(function: _Run) -> _Run:
        CASES.append(Case(name, function, (function.__doc__ or "").split("\n")[0], producer, consumer, devices))
        return function

    return add


def _passed(note: str = "", control_failed: bool | None = None) -> Outcome:
    return Outcome(Verdict.PASS, note, control_failed)


def _wrong(note: str) -> Outcome:
    return Outcome(Verdict.WRONG, note)


def _refused(error: BaseException) -> Outcome:
    return Outcome(Verdict.REFUSED, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def _take(c: Client, x: Any) -> Any:
    """What the consumer makes of a producer's array. A device that is not the case's own need not be taken."""
    try:
        return c.from_dlpack(x)
    except REFUSALS as error:
        type_of_device = int(x.__dlpack_device__()[0])
        if c.device == "cpu" and type_of_device not in _OF_THE_HOST:
            why = f"the producer's memory is on a device of type {type_of_device} ({type(error).__name__})"
            raise NotOffered(why) from error
        raise


# --- both sides: values and ownership -------------------------------------------------------------------------------


@_case("values", producer=True, consumer=True)
def values(p: Client, c: Client) -> Outcome:
    """The consumer sees the producer's elements."""
    x = p.full(100, 7)
    p.synchronize()
    seen = c.values(_take(c, x))
    return _passed() if seen == [7.0] * 100 else _wrong(f"it sees {seen[:3]}... instead of 7")


@_case("same memory", producer=True, consumer=True)
def same_memory(p: Client, c: Client) -> Outcome:
    """What the producer writes afterwards is seen through the consumer's array."""
    if not p.mutable:
        raise NotOffered("the producer's arrays cannot be changed")
    x = p.full(100, 7)
    p.synchronize()
    y = _take(c, x)
    p.fill(x, 8)
    p.synchronize()
    seen = c.values(y)
    if seen == [8.0] * 100:
        return _passed()
    return Outcome(Verdict.COPIED) if seen == [7.0] * 100 else _wrong(f"it sees {seen[:3]}...")


@_case("outlives producer", producer=True, consumer=True)
def outlives_producer(p: Client, c: Client) -> Outcome:
    """The elements stay after the producer's array is dropped and others are made."""
    x = p.full(1000, 7)
    p.synchronize()
    y = _take(c, x)
    del x
    gc.collect()
    others = [p.full(1000, 9) for _ in range(20)]
    p.synchronize()
    seen = c.values(y)
    del others
    return _passed() if seen == [7.0] * 1000 else _wrong(f"{sum(each != 7 for each in seen)} of 1000 elements are gone")


@_case("read-only", producer=True, consumer=True, devices=("cpu",))
def read_only(p: Client, c: Client) -> Outcome:
    """Memory that the producer does not let others write cannot be written through the consumer (B9)."""
    x = p.read_only(100, 7)
    try:
        y = c.from_dlpack(x)
    except REFUSALS as error:
        return _refused(error)
    if not c.is_writable(y):
        return _passed()
    try:
        c.fill(y, 8)
    except NotOffered:
        return _passed()
    except Exception as error:
        return _passed(f"a write raises {type(error).__name__}")
    c.synchronize()
    return Outcome(Verdict.COPIED) if p.values(x) == [7.0] * 100 else _wrong("the write went through")


# --- both sides: order ----------------------------------------------------------------------------------------------


class _Unordered:
    """An array whose exports are not ordered: what a consumer that asks for no order gets."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __dlpack_device__(self) -> Any:
        return self._x.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        keywords["stream"] = -1
        try:
            return self._x.__dlpack__(**keywords)
        except TypeError:
            return self._x.__dlpack__(stream=-1)


class _OnlyCai:
    """An array that speaks the CUDA Array Interface alone."""

    def __init__(self, x: Any) -> None:
        self._x = x

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._x.__cuda_array_interface__


class _OnlyCaiUnordered(_OnlyCai):
    """The same without a stream to wait for."""

    @property
    def __cuda_array_interface__(self) -> Any:
        return {**self._x.__cuda_array_interface__, "stream": None}


def _settle(stream: Any) -> None:
    """Waits for the stream, within the patience of a gate: what can go wrong then has."""
    if stream is not None:
        stream.synchronize()


def _late(p: Client, c: Client, take: Callable[[Any], Any]) -> tuple[list[float], bool]:
    """What a consumer reads of an array whose last write is still pending, and whether the host was blocked."""
    if p.device not in p.asynchronous:
        raise NotOffered(f"{p.name} computes synchronously here")
    its, own = p.stream(), c.stream()
    if its is None:
        raise NotOffered(f"{p.name} has no streams")
    gate = p.gate()
    with p.current(its):
        x = p.full(COUNT, 1)
        p.synchronize()
        c.synchronize()
        gate.hold(p.handle(its))
        with watched(gate) as host:
            p.fill(x, 7)
            with c.current(own):
                y = take(x)
                z = c.plus(y, 1)
                # Where the consumer computes synchronously it has read by now.
                seen_now = c.values(z) if c.device not in c.asynchronous else None
            blocked = host.had_to_open
            _settle(own)
    p.synchronize()
    c.synchronize()
    return seen_now or c.values(z), blocked


def _late_outcome(p: Client, c: Client, take: Callable[[Any], Any], unordered: Callable[[Any], Any]) -> Outcome:
    seen, blocked = _late(p, c, take)
    stale = sum(each != 8 for each in seen)
    if stale:
        return Outcome(Verdict.RACE, f"{stale} of {COUNT} elements are from before the producer's write")
    try:
        control = any(each != 8 for each in _late(p, c, unordered)[0])
    except Exception:
        control = False
    return _passed("the host waited" if blocked else "no wait of the host", control)


@_case("A2 late producer", producer=True, consumer=True)
def late_producer(p: Client, c: Client) -> Outcome:
    """The consumer reads at once what the producer is still writing on another stream: it sees the final elements."""
    return _late_outcome(p, c, c.from_dlpack, lambda x: c.from_dlpack(_Unordered(x)))


@_case("A8 late producer, CAI", producer=True, consumer=True, devices=("cuda",))
def late_producer_cai(p: Client, c: Client) -> Outcome:
    """The same through the CUDA Array Interface."""
    return _late_outcome(p, c, lambda x: c.from_cai(_OnlyCai(x)), lambda x: c.from_cai(_OnlyCaiUnordered(x)))


def _held_consumer(p: Client, c: Client) -> tuple[Any, Any]:
    if c.device not in c.asynchronous:
        raise NotOffered(f"{c.name} computes synchronously here")
    its, own = p.stream(), c.stream()
    if own is None:
        raise NotOffered(f"{c.name} has no streams")
    return its, own


@_case("A1 producer goes on", producer=True, consumer=True)
def producer_goes_on(p: Client, c: Client) -> Outcome:
    """The producer writes while the consumer's read is pending: the consumer sees the elements from before.

    DLPack has no way for the consumer to say when it is done, so this holds only if one side sees to it by itself.
    """
    its, own = _held_consumer(p, c)
    if not p.mutable:
        raise NotOffered(f"arrays of {p.name} cannot be changed")
    gate = c.gate()
    with p.current(its):
        x = p.full(COUNT, 7)
    p.synchronize()
    with c.current(own):
        y = c.from_dlpack(x)
        c.synchronize()
        gate.hold(c.handle(own))
        with watched(gate) as host:
            z = c.plus(y, 1)
            with p.current(its):
                p.fill(x, 100)
            blocked = host.had_to_open
            _settle(its)
    seen = c.values(z)
    changed = sum(each != 8 for each in seen)
    if changed:
        return Outcome(Verdict.RACE, f"{changed} of {COUNT} elements are from after the producer's next write")
    return _passed("the host waited" if blocked else "no wait of the host")


@_case("A6 both dropped", producer=True, consumer=True)
def both_dropped(p: Client, c: Client) -> Outcome:
    """Both sides drop the memory while the consumer's read is pending: the memory is not reused before the read."""
    its, own = _held_consumer(p, c)
    gate = c.gate()
    with p.current(its):
        x = p.full(COUNT, 7)
    p.synchronize()
    with c.current(own):
        y = c.from_dlpack(x)
        c.synchronize()
        gate.hold(c.handle(own))
        with watched(gate) as host:
            z = c.plus(y, 1)
            del x, y
            gc.collect()
            with p.current(its):
                others = [p.full(COUNT, 100) for _ in range(4)]
            blocked = host.had_to_open
            _settle(its)
    seen = c.values(z)
    del others
    changed = sum(each != 8 for each in seen)
    if changed:
        return Outcome(Verdict.RACE, f"{changed} of {COUNT} elements are the next array's")
    return _passed("the host waited" if blocked else "no wait of the host")


# --- the producer alone: what its __dlpack__ takes and gives --------------------------------------------------------


def _export(x: Any, **keywords: Any) -> Taken:
    return Taken(x.__dlpack__(**keywords))


@_case("B1 stream=None", producer=True)
def stream_none(p: Client) -> Outcome:
    """``__dlpack__(stream=None)`` gives a capsule."""
    _export(p.full(10, 7), stream=None).close()
    return _passed()


@_case("B1 stream=-1", producer=True)
def stream_minus_one(p: Client) -> Outcome:
    """``stream=-1`` means no synchronisation: a capsule, or BufferError or ValueError."""
    try:
        _export(p.full(10, 7), stream=-1).close()
    except REFUSALS as error:
        return _refused(error)
    return _passed()


@_case("B1 wrong streams", producer=True)
def wrong_streams(p: Client) -> Outcome:
    """Streams that are none are refused: -2, "x", 1.5 (and on CUDA 0, which the protocol forbids)."""
    taken = []
    for wrong in (-2, "x", 1.5, *((0,) if p.device == "cuda" else ())):
        try:
            _export(p.full(10, 7), stream=wrong).close()
        except REFUSALS:
            continue
        taken.append(repr(wrong))
    return _wrong(f"it takes stream={', '.join(taken)}") if taken else _passed()


@_case("B6 unversioned by default", producer=True)
def unversioned(p: Client) -> Outcome:
    """Without max_version the capsule is of the kind that every consumer knows."""
    taken = _export(p.full(10, 7))
    taken.close()
    return _wrong("a versioned capsule, which older consumers cannot read") if taken.versioned else _passed()


@_case("B6 versioned if asked", producer=True)
def versioned(p: Client) -> Outcome:
    """With max_version=(1, 0), and with a later one, the capsule is versioned, of major version 1."""
    for most in ((1, 0), (1, 3), (100, 3)):
        taken = _export(p.full(10, 7), max_version=most)
        taken.close()
        if not taken.versioned:
            return Outcome(Verdict.NOT_OFFERED, f"an unversioned capsule for max_version={most}")
        if taken.version is None or taken.version[0] != 1:
            return _wrong(f"version {taken.version} for max_version={most}")
    return _passed()


@_case("B7 capsule unused", producer=True)
def capsule_unused(p: Client) -> Outcome:
    """Capsules that no consumer takes give the memory back."""
    x = p.full(10, 7)
    for _ in range(100):
        x.__dlpack__()
        with contextlib.suppress(TypeError):
            x.__dlpack__(max_version=(1, 0))
    gc.collect()
    return _passed()


@_case("B8 byte_offset 0", producer=True, devices=("cpu",))
def offset_zero(p: Client) -> Outcome:
    """A slice is exported with the address of its first element: data plus byte_offset (NumPy: byte_offset 0)."""
    x = p.full(10, 7)
    try:
        part = x[3:]
    except Exception as error:
        raise NotOffered("no slices") from error
    whole, taken = _export(x), _export(part)
    ahead = taken.address - whole.address
    seen = taken.floats()
    taken.close()
    whole.close()
    if seen != [7.0] * 7:
        return _wrong(f"the slice's elements are {seen}")
    return _passed() if ahead == 12 else Outcome(Verdict.COPIED)


@_case("B8 strides given", producer=True)
def strides_given(p: Client) -> Outcome:
    """A versioned tensor has strides (from DLPack 1.2 on null strides are wrong)."""
    try:
        taken = _export(p.full(10, 7), max_version=(1, 2))
    except TypeError as error:
        raise NotOffered("no max_version") from error
    has = taken.strides is not None
    taken.close()
    return _passed() if has or not taken.versioned else _wrong("strides are null")


# --- the consumer alone, with producers that are right in unusual ways, and with wrong ones -------------------------


def _taken_by(c: Client, producer: Producer, expected: list[float]) -> Outcome:
    """The consumer reads what the producer has, and releases it exactly once."""
    try:
        y = c.from_dlpack(producer)
    except NotOffered:
        raise
    except REFUSALS as error:
        gc.collect()
        return (
            _wrong(f"refused ({type(error).__name__}), and {producer.mistakes}")
            if producer.mistakes
            else _refused(error)
        )
    seen = c.values(y)
    if seen != expected:
        return _wrong(f"it sees {seen} instead of {expected}")
    del y
    gc.collect()
    c.synchronize()
    if producer.mistakes:
        # A library may keep what it took a little longer: another call of it, and a look once more.
        c.values(c.from_dlpack(Producer(Description(floats(1), (1,)))))
        gc.collect()
    return _wrong(producer.mistakes) if producer.mistakes else _passed()


@_case("owned once", consumer=True, devices=("cpu",))
def owned_once(c: Client) -> Outcome:
    """Each export's deleter is called exactly once."""
    return _taken_by(c, Producer(Description(floats(1, 2, 3), (3,), (1,))), [1, 2, 3])


@_case("unversioned capsule", consumer=True, devices=("cpu",))
def takes_unversioned(c: Client) -> Outcome:
    """A producer that knows no versions is read."""
    return _taken_by(c, Producer(Description(floats(1, 2, 3), (3,), (1,)), versioned=False), [1, 2, 3])


class _WithoutKeywords(Producer):
    """A producer from before max_version."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        self.calls.append({})
        return self.capsule(versioned=False)


@_case("B6 no keywords", consumer=True, devices=("cpu",))
def takes_producer_without_keywords(c: Client) -> Outcome:
    """A producer whose ``__dlpack__`` takes only ``stream`` is read."""
    return _taken_by(c, _WithoutKeywords(Description(floats(1, 2, 3), (3,), (1,))), [1, 2, 3])


@_case("null strides", consumer=True, devices=("cpu",))
def null_strides(c: Client) -> Outcome:
    """Null strides mean elements in C order (before DLPack 1.2)."""
    return _taken_by(c, Producer(Description(floats(1, 2, 3), (3,)), versioned=False), [1, 2, 3])


@_case("B8 byte_offset", consumer=True, devices=("cpu",))
def byte_offset(c: Client) -> Outcome:
    """byte_offset counts."""
    return _taken_by(c, Producer(Description(floats(0, 0, 1, 2, 3), (3,), (1,), byte_offset=8)), [1, 2, 3])


@_case("B8 every second", consumer=True, devices=("cpu",))
def every_second(c: Client) -> Outcome:
    """Strides count."""
    return _taken_by(c, Producer(Description(floats(1, 0, 2, 0, 3), (3,), (2,))), [1, 2, 3])


@_case("B8 backwards", consumer=True, devices=("cpu",))
def backwards(c: Client) -> Outcome:
    """Negative strides are read, or refused."""
    return _taken_by(c, Producer(Description(floats(3, 2, 1), (3,), (-1,), byte_offset=8)), [1, 2, 3])


@_case("B8 empty", consumer=True, devices=("cpu",))
def empty(c: Client) -> Outcome:
    """An array without elements may have a null address."""
    return _taken_by(c, Producer(Description(floats(0), (0,), (1,), address=0)), [])


@_case("B9 read-only flag", consumer=True, devices=("cpu",))
def read_only_flag(c: Client) -> Outcome:
    """What is flagged as read-only cannot be written through the consumer."""
    producer = Producer(Description(floats(1, 2, 3), (3,), (1,), flags=READ_ONLY))
    try:
        y = c.from_dlpack(producer)
    except REFUSALS as error:
        return _refused(error)
    if not producer.calls or not any("max_version" in call for call in producer.calls):
        return Outcome(Verdict.NOT_OFFERED, "it asks for unversioned capsules, which have no flags")
    if not c.is_writable(y):
        return _passed()
    try:
        c.fill(y, 9)
        c.synchronize()
    except Exception as error:
        return _passed(f"a write raises {type(error).__name__}")
    return Outcome(Verdict.COPIED) if list(producer.what.data) == [1, 2, 3] else _wrong("the write went through")


class _Failing(Producer):
    """Its ``__dlpack__`` fails by itself."""

    def __dlpack__(self, **keywords: Any) -> Any:
        raise TypeError("the producer's own mistake")


@_case("B6 genuine TypeError", consumer=True, devices=("cpu",))
def genuine_type_error(c: Client) -> Outcome:
    """An error of the producer's own reaches the program."""
    try:
        c.from_dlpack(_Failing(Description(floats(1), (1,))))
    except NotOffered:
        raise
    except Exception as error:
        one: BaseException | None = error
        while one is not None:
            if "own mistake" in str(one):
                return _passed()
            one = one.__cause__ or one.__context__
        return Outcome(Verdict.WRONG_ERROR, f"{type(error).__name__}: {error}")
    return _wrong("no error")


def _refuses(c: Client, what: Description, *, versioned: bool = True) -> Outcome:
    """The consumer refuses it with an exception, and gives the export back."""
    producer = Producer(what, versioned=versioned)
    try:
        y = c.from_dlpack(producer)
    except NotOffered:
        raise
    except REFUSALS as error:
        name, said = type(error).__name__, str(error)
    except Exception as error:
        return Outcome(Verdict.WRONG_ERROR, f"{type(error).__name__}: {error}")
    else:
        return _wrong(f"it took it: {y!r:.60}")
    gc.collect()
    if producer.mistakes:
        return _wrong(f"refused ({name}), and {producer.mistakes}")
    return Outcome(Verdict.REFUSED, f"{name}: {said.splitlines()[0] if said else ''}")


@_case("B6 newer major", consumer=True, devices=("cpu",))
def newer_major(c: Client) -> Outcome:
    """A capsule of a later major version is refused, whatever else it says, and given back."""
    return _refuses(c, Description(floats(1, 2, 3), (3,), (1,), version=(2, 0)))


@_case("B10 unknown device", consumer=True, devices=("cpu",))
def unknown_device(c: Client) -> Outcome:
    """A device of an unknown type is refused."""
    return _refuses(c, Description(floats(1, 2, 3), (3,), (1,), device=(99, 0)))


@_case("B10 null data", consumer=True, devices=("cpu",))
def null_data(c: Client) -> Outcome:
    """A null address with elements is refused."""
    return _refuses(c, Description(floats(1, 2, 3), (3,), (1,), address=0))


@_case("B10 negative extent", consumer=True, devices=("cpu",))
def negative_extent(c: Client) -> Outcome:
    """A negative extent is refused."""
    return _refuses(c, Description(floats(1, 2, 3), (-3,), (1,)))


@_case("B10 negative ndim", consumer=True, devices=("cpu",))
def negative_ndim(c: Client) -> Outcome:
    """A negative number of dimensions is refused."""
    return _refuses(c, Description(floats(1, 2, 3), (3,), (1,), ndim=-1))


@_case("B10 odd type", consumer=True, devices=("cpu",))
def odd_type(c: Client) -> Outcome:
    """7-bit floating-point numbers in 3 lanes, which no library computes with, are refused, or carried without loss."""
    odd = (FLOAT, 7, 3)
    producer = Producer(Description(floats(1, 2, 3), (2,), (1,), dtype=odd))
    try:
        y = c.from_dlpack(producer)
    except REFUSALS as error:
        gc.collect()
        return (
            _wrong(f"refused ({type(error).__name__}), and {producer.mistakes}")
            if producer.mistakes
            else _refused(error)
        )
    carried = Taken(y.__dlpack__(max_version=(1, 0)))
    carried.close()
    return _passed("carried") if carried.dtype == odd else _wrong(f"it took it as {carried.dtype}")
