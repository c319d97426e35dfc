"""Memory that several devices reach is handed over for each of them without a copy (X9, scenario B5)."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir
from numpy_versions import IS_NUMPY_2

CPU, CUDA, CUDA_HOST, EXTENSION, MANAGED = 1, 2, 3, 12, 13


class _Tensor(ctypes.Structure):
    """The head of DLManagedTensorVersioned, as far as the device of its tensor."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
    ]


def handed(x: weir.Array, on: tuple[int, int], copy: bool | None = None) -> tuple[tuple[int, int], int, bool]:
    """What a capsule says: its device, its address, and whether it is a copy."""
    capsule = x.__dlpack__(dl_device=on, copy=copy, max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor_versioned"))
    return (tensor.device[0], tensor.device[1]), tensor.data, bool(tensor.flags & 2)


def address(x: weir.Array) -> int:
    return int(x.numpy(copy=False).ctypes.data)


@pytest.fixture
def pinned(cuda: weir.Device) -> weir.Array:
    x = weir.ones(4, memory="pinned")
    x.device.synchronize()
    return x


@pytest.fixture
def managed(cuda: weir.Device) -> weir.Array:
    x = weir.ones(4, device=cuda, memory="managed")
    cuda.synchronize()
    return x


@pytest.mark.parametrize("on", [(CPU, 0), (CUDA, 0), (CUDA_HOST, 0)])
def test_b5_pinned_memory_is_memory_of_each_of_its_devices(pinned: weir.Array, on: tuple[int, int]) -> None:
    assert handed(pinned, on, copy=False) == (on, address(pinned), False)
    assert handed(pinned, on) == (on, address(pinned), False)


@pytest.mark.parametrize("on", [(CPU, 0), (CUDA, 0), (MANAGED, 0)])
def test_b5_managed_memory_is_memory_of_each_of_its_devices(managed: weir.Array, on: tuple[int, int]) -> None:
    assert handed(managed, on, copy=False) == (on, address(managed), False)
    assert handed(managed, on) == (on, address(managed), False)


@pytest.mark.parametrize("on", [(CPU, 1), (CUDA, 0), (CUDA_HOST, 0), (MANAGED, 0), (EXTENSION, 0), (7, 0), (CPU, -1)])
def test_b5_no_capsule_names_another_device_than_was_asked_for(cuda: weir.Device, on: tuple[int, int]) -> None:
    x = weir.ones(4)
    with pytest.raises(weir.CopyError, match="copy=False"):
        x.__dlpack__(dl_device=on, copy=False)
    if on in ((CPU, 1), (CPU, -1), (7, 0)):
        with pytest.raises(BufferError, match="does not have here"):
            x.__dlpack__(dl_device=on)
    else:
        assert handed(x, on)[::2] == (on, True)


@pytest.mark.parametrize("on", [(CUDA_HOST, 0), (MANAGED, 0), (CUDA, 1)])
def test_b5_plain_memory_of_a_cuda_device_is_no_other_memory(cuda: weir.Device, on: tuple[int, int]) -> None:
    if on == (CUDA, 1) and len(weir.devices("cuda")) < 2:
        pytest.skip("there is one CUDA device here")
    x = weir.ones(4, device=cuda)
    with pytest.raises(weir.CopyError):
        x.__dlpack__(dl_device=on, copy=False)
    assert handed(x, on)[::2] == (on, True)


def test_x9_moving_elsewhere_copies() -> None:
    x = weir.ones(4)
    assert handed(x, (EXTENSION, 0))[::2] == ((EXTENSION, 0), True)
    assert weir.from_dlpack(x.__dlpack__(dl_device=(EXTENSION, 0))).tolist() == [1] * 4
    on_sim = weir.ones(4, device="sim:0")
    assert handed(on_sim, (CPU, 0))[::2] == ((CPU, 0), True)
    assert handed(on_sim, (EXTENSION, 0), copy=False)[::2] == ((EXTENSION, 0), False)


def test_x9_a_stream_with_a_copy_elsewhere_is_refused() -> None:
    with pytest.raises(weir.ArgumentError, match="leave stream out"):
        weir.ones(4).__dlpack__(dl_device=(EXTENSION, 0), stream=-1)


@pytest.mark.parametrize("wrong", ["cpu", (1,), (1, 0, 0), (1.0, 0), ("cpu", 0)])
def test_what_names_no_device_is_a_wrong_type(wrong: Any) -> None:
    with pytest.raises(weir.ArgumentTypeError, match="dl_device"):
        weir.ones(4).__dlpack__(dl_device=wrong)


@pytest.mark.skipif(not IS_NUMPY_2, reason="from_dlpack of NumPy 1.26 takes no device=")
def test_b5_numpy_views_managed_memory(managed: weir.Array) -> None:
    view = np.from_dlpack(managed, device="cpu", copy=False)
    view[0] = 7
    assert managed.tolist() == [7, 1, 1, 1]
    weir.fill(managed, 2)  # over when it returns: NumPy has the memory
    assert view.tolist() == [2] * 4


@pytest.mark.parametrize("call", [weir.asarray, weir.from_dlpack])
@pytest.mark.parametrize("copy", [False, None])
def test_b5_an_array_of_weir_is_seen_from_another_device(
    pinned: weir.Array, managed: weir.Array, call: Any, copy: bool | None
) -> None:
    seen = call(pinned, device="cuda:0", copy=copy)
    assert seen.device == weir.Device("cuda:0")
    assert set(seen.devices) == set(pinned.devices)
    weir.fill(seen, 3)
    assert pinned.tolist() == [3] * 4
    seen = call(managed, device="cpu", copy=copy)
    assert seen.device == weir.Device("cpu")
    assert (seen + 1).tolist() == [2] * 4
    weir.fill(seen[1:3], 5)
    assert managed.tolist() == [1, 5, 5, 1]
    weir.copy(seen, np.arange(4.0))
    assert (managed * 2).tolist() == [0, 2, 4, 6]


def test_b5_a_copy_is_one_where_it_is_asked_for(pinned: weir.Array, managed: weir.Array) -> None:
    for x, device in ((pinned, "cuda:0"), (managed, "cpu")):
        copied = weir.asarray(x, device=device, copy=True)
        moved = x.to(device)
        weir.fill(x, 9)
        assert copied.tolist() == moved.tolist() == [1] * 4
    with pytest.raises(weir.CopyError):
        weir.asarray(weir.ones(4), device="cuda:0", copy=False)


@pytest.mark.parametrize("memory", ["pinned", "managed"])
def test_b5_operations_of_both_devices_are_ordered(pinned: weir.Array, managed: weir.Array, memory: str) -> None:
    x = pinned if memory == "pinned" else managed
    other = weir.asarray(x, device="cuda:0" if memory == "pinned" else "cpu", copy=False)
    here, there = weir.Stream(x.device), weir.Stream(other.device)
    for turn in range(20):
        weir.fill(x, turn, stream=here)
        with there:
            other += 1
        assert not other.ready or x.tolist() == [turn + 1] * 4
        assert x.tolist() == [turn + 1] * 4
    weir.copy(x, other.T, stream=here)
    assert x.tolist() == [20] * 4


def test_b5_ordering_between_the_devices_is_by_the_one_memory(pinned: weir.Array) -> None:
    seen = weir.asarray(pinned, device="cuda:0", copy=False)
    gate, here = weir.testing.Gate(), weir.Stream("cpu")
    gate.hold(here)
    weir.fill(pinned, 4, stream=here)
    result = seen + 1
    assert not result.ready
    gate.open()
    assert result.tolist() == [5] * 4


def test_b5_elements_without_arithmetic_are_copied_from_there_too(pinned: weir.Array, managed: weir.Array) -> None:
    for memory, home, other in (("pinned", "cpu", "cuda:0"), ("managed", "cuda:0", "cpu")):
        x = weir.zeros(4, "bool", device=home, memory=memory)
        narrow = weir.empty(4, ml_dtypes.float8_e5m2, device=home, memory=memory)
        weir.copy(narrow, np.arange(4).astype(ml_dtypes.float8_e5m2))
        seen = weir.asarray(narrow, device=other, copy=False)
        assert seen.copy().numpy(copy=True).astype("float64").tolist() == [0, 1, 2, 3]
        assert weir.asarray(x, device=other, copy=False).tolist() == [False] * 4


def test_b5_arrays_without_elements_go_anywhere(cuda: weir.Device) -> None:
    for memory, device in (("pinned", "cpu"), ("managed", "cuda:0")):
        x = weir.empty(0, device=device, memory=memory)
        own = x.__dlpack_device__()
        assert handed(x, own, copy=False)[::2] == (own, False)
    assert handed(weir.empty(0), (EXTENSION, 0))[0] == (EXTENSION, 0)


def test_b5_library_calls_take_them(pinned: weir.Array, managed: weir.Array) -> None:
    for x, device in ((pinned, "cuda:0"), (managed, "cpu")):
        seen = weir.asarray(x, device=device, copy=False)
        found = weir.fft.fft(seen.astype("complex128"))
        assert found.device == weir.Device(device)
        assert np.allclose(found.numpy(copy=True), [4, 0, 0, 0])
        assert weir.linalg.matmul(seen, seen).item() == 4
        assert seen.sum().item() == 4


def test_b5_without_a_driver_nothing_is_pinned() -> None:
    """Plain memory stands for pinned memory there."""
    program = """
import weir
x = weir.ones(4, memory="pinned")
for copy in (None, False):
    try:
        x.__dlpack__(dl_device=(3, 0), copy=copy)
    except BufferError as refused:
        print(type(refused).__name__)
"""
    environment = {**os.environ, "WEIR_CUDA_DRIVER": "/no/driver"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["ExchangeError", "CopyError"]
