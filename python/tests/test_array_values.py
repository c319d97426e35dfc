"""Arrays as objects of Python: values, lifetimes, threads."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import resource
import sys
import threading
import weakref
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import weir
from weir.testing import Gate

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16"]
NAMES += ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", NAMES)
def test_elements_become_numbers_of_python(name: str, array_device: str) -> None:
    a = np.array([[1, 0, 3]], ml_dtypes.bfloat16 if name == "bfloat16" else name)
    x = weir.array(a, device=array_device)
    assert x.tolist() == a.tolist()
    element = x[0, 2].item()
    assert element == a[0, 2].item()
    assert type(element) is type(a[0, 2].item())
    assert complex(x[0, 2]) == complex(a[0, 2])
    assert bool(x[0, 2]) is True
    assert bool(x[:, 1]) is False
    if a.dtype.kind == "c":
        for convert in (float, int):
            with pytest.raises(weir.ArgumentTypeError, match="complex"):
                convert(x[0, 2])
    else:
        assert float(x[0, 2]) == float(a[0, 2])
        assert type(int(x[0, 2])) is int
        assert int(x[0, 2]) == int(a[0, 2])
    if a.dtype.kind in "iu":
        assert operator.index(x[0, 2]) == 3
        assert [10, 20, 30, 40][x[0, 2]] == 40
    else:
        with pytest.raises(weir.ArgumentTypeError, match="integer"):
            operator.index(x[0, 2])


def test_values_of_more_or_fewer_elements_are_refused(array_device: str) -> None:
    for x in (weir.zeros(2, int, device=array_device), weir.zeros(0, int, device=array_device)):
        for call in (float, int, complex, bool, lambda one: one.item()):
            with pytest.raises(weir.ArgumentError, match="one element"):
                call(x)
        with pytest.raises(weir.ArgumentTypeError, match="one element"):
            operator.index(x)
    for value, error in ((np.inf, OverflowError), (np.nan, ValueError)):
        with pytest.raises(error):
            int(weir.full(1, value, device=array_device))


def test_repr_never_blocks(queue_device: str) -> None:
    s = weir.Stream(queue_device)
    x = weir.zeros((3, 4), "float32", stream=s)
    with Gate() as gate:
        gate.hold(s)
        weir.fill(x, 1, stream=s)
        assert repr(x) == str(x) == f"<weir.Array float32 (3, 4) on {queue_device}>"
        assert not x.ready
        assert (x.shape, x.ndim, x.nbytes, x.T.shape, x[0].shape) == ((3, 4), 2, 48, (4, 3), (4,))
    s.synchronize()
    assert x.ready
    assert x.devices == (weir.Device(queue_device),)


def test_pickled_by_value(array_device: str) -> None:
    for name in NAMES:
        x = weir.array([[1, 0], [3, 1]], name, device=array_device)[:, ::-1]
        y = pickle.loads(pickle.dumps(x))
        assert y.device == x.device
        assert y.dtype == x.dtype
        assert y.tolist() == x.tolist()
        y += 1 if name != "bool" else True
        assert x.tolist() == [[0, 1], [1, 3]] if name != "bool" else [[False, True], [True, True]]


def test_copies_are_new_memory(queue_device: str) -> None:
    """Neither blocks: they are operations as others are."""
    s = weir.Stream(queue_device)
    x = weir.zeros(3, stream=s)
    with Gate() as gate, s:
        gate.hold(s)
        copies = [x.copy(), copy.copy(x), copy.deepcopy(x), copy.deepcopy([x])[0], x.astype(float), weir.array(x)]
        x += 1
        assert not any(one.ready for one in copies)
    assert [one.tolist() for one in copies] == [[0, 0, 0]] * 6
    assert x.tolist() == [1, 1, 1]


def test_astype_converts_as_numpy_does(array_device: str) -> None:
    a = np.array([1.7, -1.2, 300])
    x = weir.array(a, device=array_device)
    for name in ("int32", "float32", "complex64", "bool"):
        assert x.astype(name).tolist() == a.astype(name).tolist()
        assert x.astype(name).dtype == name
    assert weir.array([300], device=array_device).astype("uint8").tolist() == [44]


def test_to_another_device(array_device: str) -> None:
    x = weir.arange(4, device=array_device)
    assert x.to(array_device) is x
    assert x.to(x.device) is x
    for other in ("cpu", "sim:0", "sim:1", "cpu:inline"):
        y = x[::-1].to(other)
        assert y.device == weir.Device(other)
        assert y.tolist() == [3, 2, 1, 0]
        assert x.to(weir.Device(other)).tolist() == [0, 1, 2, 3]
    for wrong in (None, 3, "gpu"):
        with pytest.raises((weir.ArgumentTypeError, weir.ArgumentError)):
            x.to(wrong)


def test_arrays_are_referred_to_weakly_and_are_not_hashable() -> None:
    x = weir.zeros(3)
    ended: list[int] = []
    ref = weakref.ref(x, lambda _: ended.append(1))
    assert ref() is x
    del x
    gc.collect()
    assert ended == [1]
    with pytest.raises(TypeError, match="unhashable"):
        hash(weir.zeros(1))


def test_operations_leave_no_references(array_device: str) -> None:
    x = weir.ones(4, device=array_device)
    a = np.ones(4)
    number = np.float32(2)
    y = x
    before = [sys.getrefcount(one) for one in (x, a, number)]
    for _ in range(50):
        y += a
        y *= number
        x + y, x - a, a - x, x > 1, -x, x[1:], x.T, x @ x, a @ x, x.sum(), x.copy(), x.reshape(2, 2)
        x[1:3] = a[:2]
        weir.copy(x, a)
        weir.copy(a, x)
        weir.array(a)
        weir.where(x > 1, x, a)
        wrong_calls: list[Callable[[], object]] = [
            lambda: x + "a",
            lambda: x @ 2,
            lambda: x[9],
            lambda: x + weir.ones(3),
            lambda: np.sin(x),
        ]
        for wrong in wrong_calls:
            with pytest.raises((weir.Error, TypeError)):
                wrong()
    weir.Device(array_device).synchronize()
    gc.collect()
    assert [sys.getrefcount(one) for one in (x, a, number)] == before


def test_a_million_arrays_leave_no_memory() -> None:
    s = weir.Stream("cpu:inline")
    with s:

        def make(count: int) -> None:
            x = weir.ones(16)
            for _ in range(count // 4):
                y = weir.empty(16)
                z = y[2:8]
                x += 1
                w = x + 1
                del y, z, w

        make(40_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        make(1_000_000)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} KiB more"


def test_threads_share_arrays(array_device: str) -> None:
    """O8: every increment counts, from any thread, on any stream."""
    x = weir.zeros(64, "int64", device=array_device)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with weir.Stream(array_device):
                for i in range(100):
                    part = x[:] if i % 2 else x[::-1]
                    part += 1
                    if i % 25 == 0:
                        assert x.numpy(copy=True).min() >= 0
                        assert weir.arange(3, device=array_device).tolist() == [0, 1, 2]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert x.tolist() == [600] * 64


def test_operations_on_several_streams_are_ordered(queue_device: str) -> None:
    """O1: a held write holds its readers, on any stream."""
    one, two = weir.Stream(queue_device), weir.Stream(queue_device)
    x = weir.zeros(3, stream=one)
    with Gate() as gate:
        gate.hold(one)
        weir.fill(x, 5, stream=one)
        with two:
            z = weir.ones(3) + 1
            y = x + 1
        assert z.tolist() == [2, 2, 2]  # negative control: what does not conflict is not held
        assert not y.ready
    assert y.tolist() == [6, 6, 6]


def test_a_dropped_array_stays_as_long_as_work_needs_it(queue_device: str) -> None:
    """L1, L2."""
    s = weir.Stream(queue_device)
    with Gate() as gate, s:
        gate.hold(s)
        x = weir.full(1000, 3)
        y = x * 2
        del x
        gc.collect()
        others = [weir.full(1000, 9, device=queue_device) for _ in range(20)]
    assert y.tolist() == [6] * 1000
    assert all(one[0].item() == 9 for one in others)


def test_what_stands_in_an_error_is_python(array_device: str) -> None:
    """No message names a call of C++."""
    x = weir.ones((2, 3), device=array_device)
    calls: list[Callable[[], object]] = [
        lambda: x.astype("int32").__iadd__(x),
        lambda: weir.copy(x.astype("int32"), x),
        lambda: x + weir.ones(2, device="sim:1"),
        lambda: x & x,
        lambda: weir.ones(1, "bfloat16") + weir.ones(1, "float16"),
        lambda: x.sum(axis=5),
        lambda: x.reshape(4, -1),
    ]
    for call in calls:
        with pytest.raises(weir.Error) as raised:
            call()
        text = str(raised.value)
        assert "(on, " not in text
        assert "<weir.array" not in text
        assert "::" not in text


def test_arrays_without_elements_have_a_device(array_device: str) -> None:
    """The result of an operation on an empty array is on the device of that array."""
    x = weir.zeros((0, 3), device=array_device)
    wanted = weir.Device(array_device)
    assert x.device == wanted
    for one in (x.T, x[:, 1:], x + 1, x.copy(), x.sum(axis=0), x.sum(), x.reshape(3, 0), x.to("sim:1").to(wanted)):
        assert one.device == wanted
    assert (x.sum(axis=0) + weir.ones(3, device=array_device)).tolist() == [1, 1, 1]
    assert (x + weir.ones((1, 3), device=array_device)).shape == (0, 3)
    assert x.to("sim:1").device == weir.Device("sim:1")
    assert x.numpy().shape == (0, 3)
    weir.copy(x, weir.zeros((0, 3)))
    x[...] = 1
    assert x.tolist() == []
    assert repr(x) == f"<weir.Array float64 (0, 3) on {array_device}>"
