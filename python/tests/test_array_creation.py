"""Functions that make arrays: shapes, types, places, sources; and all of it without NumPy."""

from __future__ import annotations

import array as array_module
import subprocess
import sys
import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16"]
NAMES += ["float32", "float64", "complex64", "complex128"]


def numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), 0, 5, (3,), (2, 0, 3), (2, 3, 4), [2, 2], (np.int32(2), 3)])
def test_every_type_and_shape(name: str, shape: int | tuple[int, ...], array_device: str) -> None:
    dtype = numpy_type(name)
    for spelling in (name, dtype, dtype.type):
        x = weir.zeros(shape, spelling, device=array_device)
        wanted = np.zeros(shape, dtype)
        assert x.dtype == dtype
        assert x.shape == wanted.shape
        assert x.strides == wanted.strides or wanted.size == 0
        assert (x.size, x.nbytes, x.ndim, x.itemsize) == (wanted.size, wanted.nbytes, wanted.ndim, dtype.itemsize)
        np.testing.assert_array_equal(x.numpy(), wanted)
    assert weir.empty(shape, name, device=array_device).shape == wanted.shape
    np.testing.assert_array_equal(weir.ones(shape, name, device=array_device).numpy(), np.ones(shape, dtype))
    np.testing.assert_array_equal(weir.full(shape, 1, name, device=array_device).numpy(), np.ones(shape, dtype))


@pytest.mark.parametrize(
    ("given", "name"), [(bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"), ("f4", "float32")]
)
def test_types_of_python_and_other_names(given: Any, name: str) -> None:
    assert weir.empty(1, given).dtype == name
    assert weir.empty(1).dtype == "float64"


@pytest.mark.parametrize(
    "wrong", ["object", object, "float8", ">f4", np.dtype(">i8"), "datetime64[s]", "U4", str, 5, None, np.longdouble]
)
def test_other_types_are_refused(wrong: Any) -> None:
    with pytest.raises(weir.ArgumentTypeError):
        weir.empty(1, wrong)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (-1, weir.ArgumentError),
        ((2, -1), weir.ArgumentError),
        (2**70, weir.ArgumentError),
        ((1,) * 33, weir.ArgumentError),
        ("3", TypeError),
        (2.0, TypeError),
        (None, TypeError),
        ((1, "a"), TypeError),
        (True, TypeError),
    ],
)
def test_wrong_shapes_are_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        weir.zeros(wrong)
    assert isinstance(raised.value, weir.Error)


def test_the_stream_decides_the_device(array_device: str) -> None:
    s = weir.Stream(array_device)
    assert weir.zeros(3, stream=s).device == s.device
    with s:
        assert weir.zeros(3).device == s.device
        assert weir.array([1]).device == s.device
        assert weir.zeros(3, device="sim:1").device == weir.Device("sim:1")
    assert weir.zeros(3).device == weir.Device("cpu")
    assert weir.zeros(3, device=array_device, stream=s).device == s.device
    with pytest.raises(weir.ArgumentError, match="is a stream of"):
        weir.zeros(3, device="sim:1", stream=s)
    with pytest.raises(weir.ArgumentTypeError, match="pass a weir"):
        weir.zeros(3, device=3)
    with pytest.raises(weir.ArgumentTypeError):
        weir.zeros(3, stream="s")


def test_kinds_of_memory_that_are_not_here_say_so() -> None:
    with pytest.raises(weir.ArgumentError, match="pinned"):
        weir.empty(3, memory="other")
    with pytest.raises(weir.ArgumentTypeError, match="pinned"):
        weir.empty(3, memory=3)
    with pytest.raises(weir.Error):
        weir.empty(3, device="sim:0", memory="pinned")
    with pytest.raises(weir.Error):
        weir.empty(3, memory="managed")


def test_l6_pinned_and_managed_memory_are_plain_memory_where_there_is_no_driver() -> None:
    staging = weir.full(3, 7, "float64", device="cpu", memory="pinned")
    shared = weir.zeros(3, "float64", device="sim:0", memory="managed")
    assert weir.Device("cpu") in shared.devices
    weir.copy(shared, staging)
    assert shared.tolist() == [7, 7, 7]
    weir.copy(staging, shared * 2)
    assert staging.tolist() == [14, 14, 14]


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 5), (2, 5, 2), (5, 2, -1), (0.5, 3), (3, 0), (1, 2, 0.25), (np.int8(4),), (0,)]
)
@pytest.mark.parametrize("dtype", [None, "float32", "int16"])
def test_arange(arguments: tuple[Any, ...], dtype: str | None, array_device: str) -> None:
    wanted = np.arange(*arguments, dtype=dtype)
    got = weir.arange(*arguments, dtype=dtype, device=array_device)
    if not isinstance(arguments[0], np.int8):
        assert got.dtype == wanted.dtype
    assert got.tolist() == wanted.tolist()


def test_full_takes_the_values_type(array_device: str) -> None:
    values: list[Any] = [True, 3, 2.5, 1j, 2**63, np.float32(2), np.array([1, 2], "int8"), [[1.0], [2.0]]]
    for value in values:
        wanted = np.full((2, 2), value)
        got = weir.full((2, 2), value, device=array_device)
        assert got.dtype == wanted.dtype
        assert got.tolist() == wanted.tolist()
    assert weir.full(2, weir.array(5, device=array_device), device=array_device).tolist() == [5, 5]
    assert weir.full(2, 2.5, int, device=array_device).tolist() == [2, 2]
    with pytest.raises(weir.ArgumentError, match="out of range"):
        weir.full(2, 300, "uint8", device=array_device)


def test_random_is_the_same_everywhere(array_device: str) -> None:
    x = weir.random.random((3, 5), seed=7, device=array_device)
    assert x.tolist() == weir.random.random((3, 5), seed=7).tolist()
    assert x.tolist() != weir.random.random((3, 5), seed=8, device=array_device).tolist()
    assert weir.random.random(3, device=array_device).tolist() != weir.random.random(3, device=array_device).tolist()
    assert 0 <= x.min().item() <= x.max().item() < 1
    assert weir.random.random(2, dtype="float32", device=array_device).dtype == "float32"
    with pytest.raises(weir.ArgumentTypeError):
        weir.random.random(2, dtype="int32")
    with pytest.raises(weir.ArgumentError, match="seed"):
        weir.random.random(2, seed=-1)
    with pytest.raises(weir.ArgumentTypeError, match="seed"):
        weir.random.random(2, seed=0.5)


SOURCES: list[Any] = [5, 2.5, True, 1j, 2**63, [], [[], []], [1, 2], (1, 2.5), [[1, 2], [3, 4]], [True, False]]
SOURCES += [np.arange(6).reshape(2, 3), np.arange(6)[::-2], np.float32(2), np.ones((2, 2), "float16").T, b"abc"]
SOURCES += [array_module.array("d", [1, 2]), memoryview(b"abc"), [np.float64(1), 2], [np.ones(2), [1, 2]], range(3)]


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_array_copies_anything(source: Any, array_device: str) -> None:
    wanted = np.asarray(source if not isinstance(source, bytes) else list(source))
    if isinstance(source, bytes):
        source = bytearray(source)
        wanted = wanted.astype("uint8")
    got = weir.array(source, device=array_device)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    assert got.tolist() == wanted.tolist()
    if wanted.dtype.kind != "c":
        assert weir.array(source, "float32", device=array_device).tolist() == wanted.astype("float32").tolist()


def test_array_of_an_array_is_a_copy(array_device: str) -> None:
    x = weir.arange(4, device=array_device)
    copies = [weir.array(x), weir.array(x, "float32"), weir.array(x, device="sim:0"), weir.array(x, int, device="cpu")]
    assert copies[0].device == x.device
    x += 1
    assert [y.tolist() for y in copies] == [[0, 1, 2, 3]] * 4
    assert [str(y.dtype) for y in copies] == ["int64", "float32", "int64", "int64"]
    a = np.zeros(100_000)
    y = weir.array(a, device=array_device)
    a[:] = 1  # the source was taken as it was at the call
    assert y.sum().item() == 0


@pytest.mark.parametrize("wrong", [[1, [2]], [[1], [2, 3]], [[1, 2], 3], [2**63, -1], [2**64]], ids=repr)
def test_lists_of_no_shape_are_refused(wrong: Any) -> None:
    with pytest.raises(weir.ArgumentError):
        weir.array(wrong)


@pytest.mark.parametrize("wrong", ["text", ["a"], object(), None, np.array(["a"]), np.array([1], ">i4")], ids=repr)
def test_what_holds_no_numbers_is_refused(wrong: Any) -> None:
    with pytest.raises(weir.ArgumentTypeError):
        weir.array(wrong)


def test_the_class_says_how_arrays_are_made() -> None:
    with pytest.raises(weir.ArgumentTypeError, match=r"weir\.empty"):
        weir.Array(3)


def test_where_takes_numbers_and_arrays_of_numpy(array_device: str) -> None:
    x = weir.arange(4, device=array_device)
    assert weir.where(x > 1, x, -1).tolist() == [-1, -1, 2, 3]
    assert weir.where(np.array([True, False, True, False]), x, 0.5).tolist() == [0, 0.5, 2, 0.5]
    assert weir.where(x > 1, 1, 0).dtype == "int64"
    with pytest.raises(weir.ArgumentTypeError, match="where"):
        weir.where(x > 1, "a", x)


def test_everything_works_without_numpy() -> None:
    """Without NumPy types are names, and calls that need NumPy say so."""
    program = """
        import sys

        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("numpy", "ml_dtypes"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Blocker())
        import pickle
        import weir

        for device in ("cpu", "cpu:inline", "sim:0"):
            x = weir.arange(6, device=device).reshape(2, 3)
            assert x.dtype == "int64", x.dtype
            assert weir.empty(1, "bfloat16").dtype == "bfloat16"
            assert (2 * x[:, ::-1] + 0.5).tolist() == [[4.5, 2.5, 0.5], [10.5, 8.5, 6.5]]
            x[0] = [7, 8, 9]
            x += 1
            assert x.sum(axis=1).tolist() == [27, 15]
            assert weir.array([[1, 2.5]], device=device).tolist() == [[1, 2.5]]
            assert weir.array(memoryview(bytearray(b"ab")), device=device).tolist() == [97, 98]
            assert int(x.max()) == 10 and [v.item() for v in x[0]] == [8, 9, 10]
            assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
            assert weir.array(x, float).tolist() == x.tolist()
            for call in (x.numpy, lambda: x.__array__()):
                try:
                    call()
                except weir.MissingLibrary as error:
                    assert "numpy" in str(error), error
                else:
                    raise AssertionError("numpy() without NumPy")
            for wrong in ("text", object(), {1: 2}):
                try:
                    weir.array(wrong)
                except weir.ArgumentTypeError:
                    pass
                else:
                    raise AssertionError(wrong)
        y = weir.arange(3.0)
        view = memoryview(y)
        view[1] = 5.0
        view.release()
        assert y.tolist() == [0, 5, 2]
        assert "numpy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)


def test_importing_does_not_import_numpy() -> None:
    program = "import sys, weir; weir.zeros(3) + 1; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


class OnlyDlpack:
    def __init__(self, of: weir.Array) -> None:
        self.of = of

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.of.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> object:
        return self.of.__dlpack__(**keywords)


class OnlyArrow:
    def __init__(self, of: weir.Array) -> None:
        self.of = of

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.of.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("kind", [OnlyDlpack, OnlyArrow])
def test_array_takes_whatever_asarray_takes(kind: type[OnlyDlpack | OnlyArrow]) -> None:
    of = weir.arange(3, dtype="float32")
    x = weir.array(kind(of))
    y = weir.array(kind(of), "int32", device="sim:0")
    z = weir.array(kind(of), memory="pinned")
    of += 1
    assert [str(one.dtype) for one in (x, y, z)] == ["float32", "int32", "float32"]
    assert [one.tolist() for one in (x, y, z)] == [[0, 1, 2]] * 3
    x += 1
    assert of.tolist() == [1, 2, 3]
    assert weir.full(3, kind(of)).tolist() == [1, 2, 3]


class OnlyForNumpy:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_keywords: Any) -> object:
        raise BufferError("the array is on several devices")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.arange(3.0)


def test_array_takes_what_numpy_alone_gets() -> None:
    assert weir.array(OnlyForNumpy()).tolist() == [0, 1, 2]
    with pytest.raises(weir.ExchangeError, match="several devices"):
        weir.asarray(OnlyForNumpy())


def test_array_of_a_package_stays_on_its_device() -> None:
    of = weir.arange(3, device="sim:0")
    x = weir.array(OnlyDlpack(of))
    of += 1
    assert (str(x.device), x.tolist()) == ("sim:0", [0, 1, 2])
