"""DLPack in and out on the CPU (X1, X2, X5, X6, X9): NumPy as client, and producers that behave as others do."""

from __future__ import annotations

import ctypes
import gc
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from eventually import eventually
from host_waits import comes_to_wait
from numpy_versions import IS_NUMPY_2
from weir.testing import Gate


def test_x6_an_import_is_the_same_memory() -> None:
    of = np.arange(6.0).reshape(2, 3)
    x = weir.from_dlpack(of)
    assert (x.shape, str(x.dtype), str(x.device)) == ((2, 3), "float64", "cpu")
    x += 1
    assert of.tolist() == [[1, 2, 3], [4, 5, 6]], "an operation on memory of NumPy is over when its call returns"
    of[:] = 7
    assert x.tolist() == [[7, 7, 7], [7, 7, 7]]


def test_x5_asarray_takes_what_shares_memory_and_copies_the_rest() -> None:
    of = np.arange(3)
    assert np.shares_memory(weir.asarray(of).numpy(), of)
    x = weir.arange(3)
    assert weir.asarray(x) is x
    assert weir.asarray([1, 2, 3]).tolist() == [1, 2, 3]
    assert weir.asarray(of, dtype="float32").tolist() == [0.0, 1.0, 2.0]
    assert not np.shares_memory(weir.asarray(of, copy=True).numpy(), of)


@pytest.mark.parametrize("what", [[1, 2], 3.0])
def test_x9_copy_false_never_copies(what: float | list[int]) -> None:
    with pytest.raises(weir.CopyError, match="copy=False"):
        weir.asarray(what, copy=False)
    with pytest.raises(weir.CopyError, match="element type"):
        weir.asarray(np.arange(3), dtype="float32", copy=False)
    with pytest.raises(weir.CopyError, match="sim:0"):
        weir.from_dlpack(np.arange(3), device="sim:0", copy=False)


def test_x9_another_device_copies() -> None:
    x = weir.from_dlpack(np.arange(3), device="sim:0")
    assert str(x.device) == "sim:0"
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(weir.ArgumentError, match="leave stream out"):
        weir.from_dlpack(np.arange(3), device="sim:0", stream=weir.Stream("sim:0"))


def test_x1_what_is_read_only_cannot_be_written_but_read() -> None:
    of = np.arange(4.0)
    of.flags.writeable = False
    x = weir.asarray(of)
    assert (x * 2).tolist() == [0, 2, 4, 6]
    with pytest.raises(weir.ArgumentError, match=r"memory of numpy, which shares it for reading only"):
        x += 1
    with pytest.raises(weir.ArgumentError, match="reading only"):
        weir.fill(x, 0)
    assert of.tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    if IS_NUMPY_2:
        again = np.from_dlpack(x)
        assert not again.flags.writeable
    else:
        with pytest.raises(BufferError, match="read-only"):
            np.from_dlpack(x)


@pytest.mark.parametrize(
    "layout", [lambda a: a[::-1], lambda a: a[::2], lambda a: a.T, lambda a: a[:, 1:2], lambda a: a[:1, 0].reshape(())]
)
def test_x1_any_strides_go_in_and_out(layout: Callable[[Any], Any]) -> None:
    of = layout(np.arange(12).reshape(3, 4))
    x = weir.from_dlpack(of)
    assert x.tolist() == of.tolist()
    assert np.from_dlpack(x).tolist() == of.tolist()


def test_x7_an_export_is_the_same_memory_and_later_operations_do_not_return_before_they_are_over() -> None:
    x = weir.zeros(1000)
    seen = np.from_dlpack(x)
    for i in range(20):
        x += 1
        assert seen[999] == i + 1
    if IS_NUMPY_2:
        seen[:] = 5
        assert x.tolist()[0] == 5


def test_x2_an_export_waits_for_what_writes() -> None:
    s = weir.Stream()
    x = weir.zeros(4)
    seen: list[list[float]] = []
    with Gate() as gate:
        with s:
            gate.hold(s)
            x += 1
        exporting = threading.Thread(target=lambda: seen.append(np.from_dlpack(x).tolist()))
        exporting.start()
        assert comes_to_wait(exporting)
    exporting.join()
    assert seen == [[1, 1, 1, 1]]


@pytest.mark.parametrize("place", ["cpu", "sim:0"])
@pytest.mark.parametrize("stream", [None, -1])
def test_x2_the_cpu_takes_no_stream(place: str, stream: int | None) -> None:
    assert weir.from_dlpack(weir.ones(2, device=place).__dlpack__(stream=stream)).tolist() == [1, 1]


@pytest.mark.parametrize("place", ["cpu", "sim:0"])
@pytest.mark.parametrize(
    "stream",
    [0, 1, 2, -2, 12345, 1 << 64, True, False, 1.0, -1.0, "x", object(), types.SimpleNamespace(cuda_stream=1)],
)
def test_x2_every_other_stream_is_refused_on_the_cpu(place: str, stream: object) -> None:
    s = weir.Stream(place)
    x = weir.zeros(2, stream=s)
    with Gate() as gate:
        gate.hold(s)
        weir.fill(x, 1, stream=s)
        with pytest.raises(weir.ArgumentError, match="pass None or -1"):
            x.__dlpack__(stream=stream)
        assert not s.done, "it is refused before anything is waited for"
    assert not weir.explain(x).host_blocked
    weir.fill(x, 2, stream=s)
    assert x.tolist() == [2, 2]


@pytest.mark.parametrize("place", ["cpu", "sim:0"])
def test_x2_streams_of_weirs_own_are_refused_on_the_cpu(place: str) -> None:
    for stream in (weir.Stream(place), weir.Stream("cpu:inline"), weir.Event(place)):
        with pytest.raises(weir.ArgumentError, match="pass None or -1"):
            weir.ones(2, device=place).__dlpack__(stream=stream)


def test_x1_a_capsule_is_consumed_once() -> None:
    capsule = weir.ones(2).__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    weir.from_dlpack(capsule)
    assert "used_dltensor_versioned" in repr(capsule)
    with pytest.raises(weir.ExchangeError, match="consumed before"):
        weir.from_dlpack(capsule)


@pytest.mark.parametrize("version", [None, (0, 8)])
def test_x1_without_a_version_the_capsule_has_none(version: tuple[int, int] | None) -> None:
    capsule = weir.ones(2).__dlpack__(max_version=version)
    assert '"dltensor"' in repr(capsule)
    assert weir.from_dlpack(capsule).tolist() == [1, 1]


def test_x1_capsules_of_others_are_refused() -> None:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    with pytest.raises(weir.ExchangeError, match="is named"):
        weir.from_dlpack(new(1, b"something", None))
    with pytest.raises(weir.ArgumentTypeError, match="asarray"):
        weir.from_dlpack(3)


@pytest.mark.parametrize("call", [weir.from_dlpack, weir.asarray])
def test_x9_there_is_one_cpu(call: Callable[..., weir.Array]) -> None:
    assert call(weir.ones(2), device=(1, 0)).device.name == "cpu"
    with pytest.raises(weir.ArgumentError, match=r"no device that DLPack names \(1, 1\)"):
        call(weir.ones(2), device=(1, 1))


@pytest.mark.skipif(not IS_NUMPY_2, reason="from_dlpack of NumPy 1.26 takes no copy=")
def test_x1_a_copy_says_that_it_is_one() -> None:
    x = weir.zeros(3)
    copied = np.from_dlpack(x, copy=True)
    copied[:] = 1
    assert x.tolist() == [0, 0, 0]
    with pytest.raises(weir.CopyError, match="copy=False"):
        weir.zeros(3, device="sim:0").__dlpack__(dl_device=(1, 0), copy=False)
    assert np.from_dlpack(weir.ones(3, device="sim:0"), device="cpu").tolist() == [1, 1, 1]


class OfOthers:
    """A producer as others are, around an array of NumPy."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __dlpack_device__(self) -> tuple[int, int | None]:
        return (1, None)  # as Paddle's


class WithoutKeywords(OfOthers):
    def __dlpack__(self) -> object:
        return self.of.__dlpack__()


class WithStreamOnly(OfOthers):
    def __dlpack__(self, stream: int | None = None) -> object:
        assert stream is None
        return self.of.__dlpack__()


class WithoutVersions(OfOthers):
    """As array-api-strict with NumPy 1.26."""

    def __dlpack__(self, *, max_version: object = None) -> object:
        if max_version is not None:
            raise NotImplementedError("max_version is not implemented")
        return self.of.__dlpack__()


@pytest.mark.parametrize("kind", [WithoutKeywords, WithStreamOnly, WithoutVersions])
def test_x1_producers_without_keywords(kind: type[OfOthers]) -> None:
    of = np.arange(3)
    x = weir.asarray(kind(of))
    x += 1
    assert of.tolist() == [1, 2, 3]


class Broken(OfOthers):
    def __dlpack__(self, **_: object) -> object:
        raise BufferError("not today")


class Interrupted(OfOthers):
    def __dlpack__(self, **_: object) -> object:
        raise KeyboardInterrupt


class WithoutDevice(Broken):
    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("no device of that kind")


@pytest.mark.parametrize("take", [weir.from_dlpack, weir.asarray, weir.array, weir.In, lambda x: weir.ones(3) + x])
def test_x10_what_a_producer_raises_is_the_cause_of_an_error_of_weir(take: Callable[[Any], Any]) -> None:
    of = Broken(None)
    with pytest.raises(
        weir.ExchangeError, match=r'does not hand over .* DLPack: BufferError, "not today"; make'
    ) as raised:
        take(of)
    assert isinstance(raised.value.__cause__, BufferError)
    with pytest.raises(weir.ExchangeError, match="no device of that kind") as raised:
        take(WithoutDevice(np.arange(3)))
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(KeyboardInterrupt):
        take(Interrupted(None))


@pytest.mark.parametrize("take", [weir.from_dlpack, weir.asarray])
def test_e8_stream_and_copy_are_what_they_say(take: Callable[..., weir.Array]) -> None:
    of = np.arange(3)
    with pytest.raises(weir.ArgumentTypeError, match="no stream"):
        take(of, stream="x")
    with pytest.raises(weir.ArgumentError, match="sim:0"):
        take(of, stream=weir.Stream("sim:0"))
    closed = weir.Stream()
    closed.close()
    with pytest.raises(weir.StateError, match="closed"):
        take(of, stream=closed)
    for wrong in ("x", 1, [True]):
        with pytest.raises(weir.ArgumentTypeError, match=r"copy is .*: pass True, False or None"):
            take(of, copy=wrong)
    assert take(of, copy=np.bool_(False), stream=weir.Stream()).tolist() == [0, 1, 2]


def test_x9_a_copy_is_made_on_the_stream_that_is_given() -> None:
    s = weir.Stream()
    with Gate() as gate:
        gate.hold(s)
        x = weir.asarray(weir.arange(3), copy=True, stream=s)
        assert not s.done
        gate.open()
    assert x.tolist() == [0, 1, 2]


def test_x6_memory_that_can_only_be_read_may_be_exclusive() -> None:
    for of in (memoryview(b"abc"), np.frombuffer(b"abc", "uint8")):
        x = weir.asarray(of, exclusive=True)
        assert x.tolist() == [97, 98, 99]
    with pytest.raises(weir.ArgumentError, match="for reading only"):
        weir.fill(weir.asarray(memoryview(b"abc"), exclusive=True), 1)


class NoPair(OfOthers):
    def __dlpack_device__(self) -> str:  # type: ignore[override]
        return "cpu"

    def __dlpack__(self, **_: object) -> object:
        raise AssertionError("not asked")


def test_x1_a_device_that_is_none() -> None:
    with pytest.raises(weir.ExchangeError, match=r"not \(type, id\)"):
        weir.from_dlpack(NoPair(None))


def test_l4_the_producers_array_lives_as_long_as_it_is_used() -> None:
    class Kept(np.ndarray):
        pass

    of = np.arange(3.0).view(Kept)
    gone = weakref.ref(of)
    s = weir.Stream()
    gate = Gate()
    x = weir.asarray(of, exclusive=True)
    del of
    with s:
        gate.hold(s)
        x += 1
    del x
    gc.collect()
    assert gone() is not None, "an operation is pending"
    gate.open()
    s.synchronize()
    eventually(lambda: gone() is None)


def test_x6_what_is_exclusive_does_not_block() -> None:
    s = weir.Stream()
    gate = Gate()
    of = np.zeros(3)
    x = weir.asarray(of, exclusive=True)
    with s:
        gate.hold(s)
        x += 1  # would never return if it had to be over
    assert of.tolist() == [0, 0, 0]
    gate.open()
    s.synchronize()
    assert of.tolist() == [1, 1, 1]


def test_x1_dlpack_device() -> None:
    assert weir.ones(1).__dlpack_device__() == (1, 0)
    assert weir.ones(1, device="sim:0").__dlpack_device__() == (12, 0)


def test_l4_an_export_keeps_the_memory() -> None:
    x = weir.full(1000, 3.0)
    seen = np.from_dlpack(x)
    del x
    others = [weir.zeros(1000) for _ in range(20)]
    assert seen.sum() == 3000
    del others
