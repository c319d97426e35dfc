"""Element-wise kernels of a program (rules K1 to K4), beside NumPy."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weir

N = 1000


@pytest.fixture
def axpy() -> weir.ElementwiseKernel:
    return weir.elementwise("float x, float a", "float y", "y = a * x + 1", name="axpy")


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_a_new_array(any_device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    x = weir.arange(N, dtype="float32", device=any_device)
    y = axpy(x, 2)
    assert isinstance(y, weir.Array)
    assert y.device == any_device
    assert str(y.dtype) == "float32"
    np.testing.assert_array_equal(y.numpy(), np.arange(N, dtype="float32") * 2 + 1)


def test_outputs_that_there_are_are_returned(any_device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    x = weir.ones(N, "float32", device=any_device)
    y = weir.zeros(N, "float32", device=any_device)
    assert axpy(x, 4, out=y) is y
    assert y.numpy()[7] == 5
    event = axpy.launch(x, 5, out=y)
    assert isinstance(event, weir.Event)
    event.synchronize()
    assert y.numpy()[7] == 6


def test_several_outputs(any_device: weir.Device) -> None:
    kernel = weir.elementwise("T x", "T low, inout T total", "low = x - 1; total += x")
    x = weir.arange(5, dtype="int32", device=any_device)
    total = weir.full(5, 10, "int32", device=any_device)
    low, same = kernel(x, out=(None, total))
    assert same is total
    assert low.tolist() == [-1, 0, 1, 2, 3]
    assert total.tolist() == [10, 11, 12, 13, 14]
    both = weir.elementwise("T x", "T a, float64 b", "a = 2 * x; b = 0.5 * x")(x)
    assert isinstance(both, tuple)
    assert [str(one.dtype) for one in both] == ["int32", "float64"]
    assert both[1].tolist() == [0, 0.5, 1, 1.5, 2]


NUMBERS = [2, 2.5, True, np.float32(2.5), np.int64(3), np.float64(-1), np.bool_(True)]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_are_converted(number: Any, axpy: weir.ElementwiseKernel) -> None:
    assert axpy(weir.ones(3, "float32"), number).tolist() == [float(number) + 1] * 3


def test_numbers_take_the_type_of_arrays() -> None:
    kernel = weir.elementwise("T x, T a", "T y", "y = x + a")
    assert str(kernel(weir.ones(3, "float32"), 2).dtype) == "float32"
    assert str(kernel(2, 3).dtype) == "int64"
    assert kernel(2, 3.5).item() == 5.5
    assert kernel(1j, 2).item() == 2 + 1j
    assert kernel(weir.ones(2, "complex64"), 1j).tolist() == [1 + 1j] * 2


def random_view(random: np.random.Generator, x: np.ndarray[Any, Any], device: weir.Device) -> tuple[Any, Any]:
    """The same view of an array of NumPy's and of its copy on the device."""
    mine: Any = weir.array(x, device=device)
    theirs: Any = x
    if random.integers(2):
        index = tuple(
            slice(None, None, int(random.choice([1, 1, 2, -1, -2]))) if extent > 1 else slice(None)
            for extent in x.shape
        )
        mine, theirs = mine[index], theirs[index]
    if random.integers(2):
        mine, theirs = mine.T, theirs.T
    if theirs.ndim and random.integers(3) == 0:
        axis = int(random.integers(theirs.ndim))
        index = tuple(slice(0, 1) if k == axis else slice(None) for k in range(theirs.ndim))
        mine, theirs = mine[index], theirs[index]
    return mine, theirs


@pytest.mark.parametrize("seed", range(60))
def test_any_shapes_and_strides(any_device: weir.Device, seed: int) -> None:
    random = np.random.default_rng(seed)
    kernel = weir.elementwise("T a, T b, T c", "T y, int64 at", "y = a * b - c; at = i")
    dtype = random.choice(["float64", "int32", "float32", "uint8", "int64"])
    shape = tuple(int(extent) for extent in random.integers(1, 7, size=int(random.integers(0, 5))))
    mine, theirs = [], []
    for _ in range(3):
        kept = shape[int(random.integers(len(shape) + 1)) :]
        values = random.integers(0, 100, size=kept).astype(dtype)
        one, other = random_view(random, values, any_device)
        mine.append(one)
        theirs.append(other)
    try:
        result = np.broadcast_shapes(*(one.shape for one in theirs))
    except ValueError:
        assert "broadcast" in message(weir.ArgumentError, lambda: kernel(*mine))
        return
    with np.errstate(all="ignore"):
        expected = (theirs[0] * theirs[1] - theirs[2]).astype(dtype)
    y, at = kernel(*mine)
    np.testing.assert_array_equal(y.numpy(), np.broadcast_to(expected, result))
    np.testing.assert_array_equal(at.numpy(), np.arange(int(np.prod(result))).reshape(result))


@pytest.mark.parametrize("seed", range(30))
def test_outputs_with_any_strides_that_overlap_inputs(any_device: weir.Device, seed: int) -> None:
    random = np.random.default_rng(seed)
    kernel = weir.elementwise("T a, T b", "inout T y", "y = y * 3 + a - b")
    values = random.integers(0, 1000, size=(7, 8))
    mine, theirs = weir.array(values, device=any_device), values.copy()

    def part() -> tuple[slice, slice]:
        rows, columns = int(random.integers(2)), int(random.integers(3))
        steps = [int(step) for step in random.choice([1, -1], size=2)]
        first = slice(rows, rows + 6) if steps[0] == 1 else slice(rows + 5, rows - 1 if rows else None, -1)
        second = (
            slice(columns, columns + 6) if steps[1] == 1 else slice(columns + 5, columns - 1 if columns else None, -1)
        )
        return first, second

    a, b, y = part(), part(), part()
    expected = theirs[y] * 3 + theirs[a] - theirs[b]
    kernel(mine[a], mine[b], out=mine[y])
    theirs[y] = expected
    np.testing.assert_array_equal(mine.numpy(), theirs)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint64", "float16", "float32", "float64", "complex64"])
def test_element_types(any_device: weir.Device, dtype: str) -> None:
    x = np.arange(7).astype(dtype)
    y = weir.elementwise("T x", "T y", "y = x")(weir.array(x, device=any_device))
    np.testing.assert_array_equal(y.numpy(), x)
    z = weir.elementwise(f"{dtype} x", "bool z", "z = x == x")(weir.array(x, device=any_device))
    assert z.tolist() == [True] * 7


def test_functions_are_those_of_numpy(any_device: weir.Device) -> None:
    x = np.linspace(0.1, 0.9, 50)
    mine = weir.array(x, device=any_device)
    functions = {
        "sqrt(x)": np.sqrt(x),
        "exp(x) + log(x)": np.exp(x) + np.log(x),
        "sin(x) * cos(x) + tan(x)": np.sin(x) * np.cos(x) + np.tan(x),
        "pow(x, 2.5)": x**2.5,
        "min(x, 0.5) + max(x, 0.25)": np.minimum(x, 0.5) + np.maximum(x, 0.25),
        "fabs(-x) + abs(-x)": 2 * x,
        "floor(10 * x) + ceil(x) + rint(x)": np.floor(10 * x) + np.ceil(x) + np.rint(x),
        "atan2(x, 2.0) + hypot(x, x)": np.arctan2(x, 2) + np.hypot(x, x),
        "rsqrt(x)": 1 / np.sqrt(x),
        "isnan(x) ? 0.0 : x": x,
    }
    for body, expected in functions.items():
        np.testing.assert_allclose(weir.elementwise("T x", "T y", f"y = {body}")(mine).numpy(), expected, rtol=1e-14)


UNARY = (
    "sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p fabs "
    "abs floor ceil trunc round rint nearbyint erf erfc tgamma lgamma logb rsqrt isnan isinf isfinite signbit"
)
BINARY = "pow atan2 fmod remainder fdim hypot fmin fmax copysign nextafter min max"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_function_of_the_documentation_is_there(any_device: weir.Device, dtype: str) -> None:
    """In the type of its arguments: the next number after a float32 is a float32."""
    calls = (
        [f"{name}(x)" for name in UNARY.split()]
        + [f"{name}(x, y)" for name in BINARY.split()]
        + ["fma(x, y, x)", "ldexp(x, 3)"]
    )
    names = [f"z{k}" for k in range(len(calls))]
    x = weir.full(2, 0.25, dtype, device=any_device)
    for at in range(0, len(calls), 10):
        body = "; ".join(f"{name} = {call}" for name, call in zip(names, calls[at : at + 10], strict=False))
        outputs = ", ".join(f"T {name}" for name in names[: len(calls[at : at + 10])])
        weir.elementwise("T x, T y", outputs, body)(x, 0.5)
    after = weir.elementwise("T x", "T y", "y = nextafter(x, T(1))")(x)
    assert after.numpy()[0] == np.nextafter(np.array(0.25, dtype), np.array(1, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_made_as_those_of_cpp(any_device: weir.Device, dtype: str) -> None:
    given = np.array([1 + 2j, -3 + 0.5j, 1]).astype(dtype)
    x = weir.array(given, device=any_device)
    bodies = {
        "y = T(0)": given * 0,
        "y = static_cast<T>(1)": given * 0 + 1,
        "y = T(2.5) * x": given * 2.5,
        "y = T(real(x), -imag(x))": given.conj(),
        f"y = {dtype}(1, i)": 1 + 1j * np.arange(3),
        "y = T{real(x), 2}": given.real + 2j,
        "y = +x": given,
        "T one = 1; y = one + x": given + 1,
        "y = x == 1 ? x : T(0)": np.where(given == 1, given, 0),
        "y = 1 != x ? 7 / x : 0": np.where(given != 1, 7 / given, 0),
        "y = complex64(complex128(x))": given,
    }
    for body, expected in bodies.items():
        np.testing.assert_allclose(weir.elementwise("T x", "T y", body)(x).numpy(), expected.astype(dtype), rtol=1e-6)


def test_results_are_those_of_numpy_bit_for_bit(any_device: weir.Device) -> None:
    """Multiplications are not fused with additions."""
    random = np.random.default_rng(1)
    x, y, z = random.standard_normal((3, 10_000)).astype("float32")
    kernel = weir.elementwise("T x, T y, T z", "T w", "w = x * y + z")
    operands = [weir.array(one, device=any_device) for one in (x, y, z)]
    np.testing.assert_array_equal(kernel(*operands).numpy(), x * y + z)


def test_a_body_of_several_lines_with_return(any_device: weir.Device) -> None:
    kernel = weir.elementwise(
        "T x",
        "int32 steps",
        """
        T z = x;  // 'quoted' and "i"
        for (int k = 0; k < 100; ++k) {
            if (z > 50) {
                steps = k;
                return;
            }
            z = z * 2;
        }
        steps = -1;
        """,
    )
    assert kernel(weir.array([1.0, 30.0, 60.0, 0.0], device=any_device)).tolist() == [6, 1, 0, -1]


def test_many_elements_run_on_several_threads() -> None:
    x = np.arange(1_000_003, dtype="int64")
    y = weir.elementwise("T x", "T y", "y = x * 3 + i")(weir.array(x))
    np.testing.assert_array_equal(y.numpy(), x * 4)
    grid = np.arange(600_000, dtype="int32").reshape(300, 50, 40)
    z = weir.elementwise("T x, T row", "T y", "y = x + row")(
        weir.array(grid)[:, ::-1, :30], weir.arange(30, dtype="int32")
    )
    np.testing.assert_array_equal(z.numpy(), grid[:, ::-1, :30] + np.arange(30, dtype="int32"))


def test_arrays_of_numpy_are_taken_as_they_are_at_the_call(axpy: weir.ElementwiseKernel) -> None:
    x = np.ones(N, "float32")
    s = weir.Stream()
    gate = weir.testing.Gate()
    gate.hold(s)
    y = axpy(x, 2, stream=s)
    x[:] = 100
    gate.open()
    assert y.numpy()[5] == 3


def test_an_output_of_numpy_is_complete_when_the_call_returns(axpy: weir.ElementwiseKernel) -> None:
    out = np.zeros(N, "float32")
    assert axpy(weir.ones(N, "float32"), 2, out=out) is out
    assert (out == 3).all()


def test_arrays_of_torch(axpy: weir.ElementwiseKernel) -> None:
    torch = pytest.importorskip("torch")
    assert axpy(torch.ones(5), 2).tolist() == [3] * 5
    out = torch.zeros(5)
    assert axpy(torch.ones(5), 2, out=out) is out
    weir.Device("cpu").synchronize()
    assert out.tolist() == [3] * 5


# Order.


def test_it_waits_for_its_operands_and_the_host_does_not(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s1)
    axpy(x, 2, stream=s2).numpy()  # compiled by now
    gate = weir.testing.Gate()
    gate.hold(s1)
    weir.fill(x, 5, stream=s1)
    y = axpy(x, 2, stream=s2)
    weir.fill(x, 7, stream=s1)
    assert not y.ready
    gate.open()
    assert y.numpy()[0] == 11
    assert x.numpy()[0] == 7


def test_control_without_ordering_it_reads_too_early(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s1)
    axpy(x, 2, stream=s2).numpy()
    with weir.ordering("manual"):
        gate = weir.testing.Gate()
        gate.hold(s1)
        weir.fill(x, 5, stream=s1)
        y = axpy(x, 2, stream=s2)
        s2.synchronize()
        assert y.numpy()[0] == 3
        gate.open()
        device.synchronize()


def test_check_names_the_kernel(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s1)
    device.synchronize()
    with weir.check(assume="manual") as report:
        weir.fill(x, 5, stream=s1)
        axpy(x, 2, stream=s2)
    assert [(race.kind, race.second.label) for race in report.races] == [("RAW", "axpy")]


def test_after(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x = weir.ones(N, "float32", stream=s2)
    axpy(x, 2, stream=s2).numpy()
    gate = weir.testing.Gate()
    gate.hold(s1)
    held = s1.record()
    y = axpy(x, 2, stream=s2, after=held)
    event = axpy.launch(x, 2, out=weir.empty(N, "float32", stream=s2), stream=s2, after=[held])
    assert not y.ready
    assert not event.done
    gate.open()
    assert y.numpy()[0] == 3


def test_a_launch_may_wait(axpy: weir.ElementwiseKernel) -> None:
    x, y = weir.ones(N, "float32"), weir.empty(N, "float32")
    assert axpy.launch(x, 2, out=y, wait=True).done
    failing = weir.Stream()

    def fails(x: Any) -> None:
        raise ValueError("no")

    weir.host_task(fails, weir.Out(x), stream=failing)
    with pytest.raises(weir.OperationError, match="fails"):
        axpy.launch(x, 2, out=y, wait=True)
    with pytest.raises(weir.ArgumentTypeError, match="wait"):
        axpy.launch(x, 2, out=y, wait=2)  # type: ignore[arg-type]


def test_the_current_stream(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    s = weir.Stream(device)
    x = weir.ones(N, "float32", stream=s)
    axpy(x, 2).numpy()
    gate = weir.testing.Gate()
    gate.hold(s)
    with s:
        y = axpy(x, 2)
    assert not y.ready
    gate.open()
    assert y.numpy()[0] == 3


def test_operands_and_the_kernel_may_go(device: weir.Device) -> None:
    s = weir.Stream(device)
    kernel = weir.elementwise("float x, float a", "float y", "y = a * x + 1")
    kernel(weir.ones(N, "float32", stream=s), 1, stream=s).numpy()
    gate = weir.testing.Gate()
    gate.hold(s)
    y = kernel(weir.full(N, 4, "float32", stream=s), 2, stream=s)
    del kernel
    gc.collect()
    noise = weir.full(N, 77, "float32", stream=s)
    gate.open()
    assert y.numpy()[9] == 9
    assert noise.numpy()[9] == 77


# Errors.


READS = {"y = x;\ny += 1": 2, "y = y + x": 1, "\n\nif (y > 2) { y = x; }": 3, "T z = sqrt(y); y = z": 1}


def test_a_read_of_an_output_is_refused(any_device: weir.Device) -> None:
    x = weir.ones(3, device=any_device)
    for body, line in READS.items():
        said = message(weir.ArgumentError, lambda body=body: weir.elementwise("T x", "T y", body, name="k")(x))  # type: ignore[misc]
        assert f"reads the output y in line {line}, " in said, said
        assert 'declare it "inout T y"' in said


def test_an_error_of_the_compiler_has_the_line_of_the_body(any_device: weir.Device) -> None:
    x = weir.ones(3, device=any_device)
    kernel = weir.elementwise("T x", "T y", "T z = x;\n  y = z + unknown;\n", name="k")
    said = message(weir.ArgumentError, lambda: kernel(x))
    assert said.startswith(
        'the body of the element-wise kernel k(T x -> T y) does not compile: line 2, "y = z + unknown;": '
    )
    assert "says:" in said
    assert "weir::" not in said


def test_wrong_operands_are_refused(axpy: weir.ElementwiseKernel) -> None:
    x = weir.ones(3, "float32")

    def wrong(*inputs: Any, **more: Any) -> str:
        return message(weir.ArgumentError, lambda: axpy(*inputs, **more))

    def wrong_type(*inputs: Any, **more: Any) -> str:
        return message(weir.ArgumentTypeError, lambda: axpy(*inputs, **more))

    assert "it has 2 inputs, and got 1" in wrong(x)
    assert "does not broadcast" in wrong(x, weir.ones(4, "float32"))
    assert "the results have the shape (3,), the arrays for them (4,)" in wrong(x, 1, out=weir.ones(4, "float32"))
    assert "got an array of float64: convert it with x.astype(dtype)" in wrong_type(weir.ones(3), 1)
    assert "got the number (0+1j)" in wrong_type(x, 1j)
    assert "an operand is a list: make an array of it" in wrong_type(x, [1, 2, 3])
    assert "pass an array for each output" in wrong_type(x, 1, out=3)
    assert "it has 1 outputs, and got arrays for 2" in wrong(x, 1, out=(x, x))
    assert "pass out=" in message(weir.ArgumentError, lambda: axpy.launch(x, 1, out=None))
    assert "pass the array itself" in wrong_type(weir.In(x), 1)
    assert "pass the array itself" in wrong_type(x, 1, out=weir.Out(x))
    with pytest.raises(weir.Error, match=r"sim:0"):
        axpy(x, weir.ones(3, "float32", device="sim:0"))
    with pytest.raises(weir.ArgumentTypeError):
        axpy(x, "text")
    with pytest.raises(weir.ArgumentTypeError, match="inputs is 3"):
        weir.elementwise(3, "T y", "y = 1")  # type: ignore[arg-type]
    large = message(weir.ArgumentError, lambda: weir.elementwise("int64 x", "int64 y", "y = x")(-(2**63) - 1))
    assert "out of range: pass one of int64" in large
    assert "300" in message(weir.ArgumentError, lambda: weir.elementwise("uint8 x", "uint8 y", "y = x")(300))


def test_words() -> None:
    kernel = weir.elementwise("in float32 x, T a", "inout T y, bool z", "z = x > a; y += a", name="k")
    assert repr(kernel) == "<weir.elementwise k(float32 x, T a -> inout T y, bool z)>"
    assert kernel.name == "k"
    assert weir.elementwise("T x", "T y", "y = x").name == "elementwise"


def test_a_failed_operand_fails_the_results(device: weir.Device, axpy: weir.ElementwiseKernel) -> None:
    if device.kind == "cuda":
        pytest.skip("host tasks on a CUDA device fail in test_host_task.py")

    def breaks(x: Any) -> None:
        raise RuntimeError("no")

    x = weir.ones(N, "float32", device=device)
    weir.host_task(breaks, weir.InOut(x))
    y = axpy(x, 2)
    with pytest.raises(weir.OperationError):
        y.numpy()


# The compiler and the cache. Each in a process of its own, since a process keeps what it compiled.

PROGRAM = """
import sys, weir
x = weir.ones(3, "float32", device=sys.argv[1] if len(sys.argv) > 1 else "cpu")
try:
    print(weir.elementwise("float x", "float y", "y = x + 41")(x).tolist())
except weir.Error as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def counted(tmp_path: Path) -> tuple[str, Callable[[], int]]:
    """A compiler that notes each call, and how often it compiled."""
    log = tmp_path / "log"
    script = tmp_path / "compiler"
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec c++ "$@"\n')
    script.chmod(0o755)
    return str(script), lambda: log.read_text().count("-shared") if log.exists() else 0


def started(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(**environment: str) -> tuple[str, str]:
    out, error = started(**environment).communicate(timeout=120)
    return out, error


RIGHT = "[42.0, 42.0, 42.0]\n"


def test_the_next_process_finds_what_was_compiled(tmp_path: Path, counted: tuple[str, Callable[[], int]]) -> None:
    compiler, count = counted
    cache = str(tmp_path / "cache")
    for _ in range(2):
        assert output(WEIR_CXX=compiler, WEIR_CACHE_DIR=cache) == (RIGHT, "")
    assert count() == 1


def test_a_damaged_file_is_compiled_anew(tmp_path: Path, counted: tuple[str, Callable[[], int]]) -> None:
    compiler, count = counted
    cache = tmp_path / "cache"
    output(WEIR_CXX=compiler, WEIR_CACHE_DIR=str(cache))
    for kept in [slice(0, 2000), slice(0, -5), slice(0, 0)]:
        (file,) = cache.glob("*.kernel")
        file.write_bytes(file.read_bytes()[kept] + b"xxxxx")
        before = count()
        assert output(WEIR_CXX=compiler, WEIR_CACHE_DIR=str(cache)) == (RIGHT, "")
        assert count() == before + 1
        assert output(WEIR_CXX=compiler, WEIR_CACHE_DIR=str(cache)) == (RIGHT, "")
        assert count() == before + 1, "and was kept"


def test_a_folder_that_cannot_be_written_is_said_and_no_error() -> None:
    out, error = output(WEIR_CACHE_DIR="/dev/null/none")
    assert out == RIGHT
    assert error.startswith("weir: WEIR_CACHE_DIR=/dev/null/none: compiled kernels cannot be kept there")


def test_processes_that_compile_at_once(tmp_path: Path, counted: tuple[str, Callable[[], int]]) -> None:
    compiler, count = counted
    cache = tmp_path / "cache"
    processes = [started(WEIR_CXX=compiler, WEIR_CACHE_DIR=str(cache)) for _ in range(4)]
    assert [process.communicate(timeout=120) for process in processes] == [(RIGHT, "")] * 4
    assert 1 <= count() <= 4
    assert len(list(cache.iterdir())) == 1, "no unfinished files are left"


def test_another_compiler_is_another_result(tmp_path: Path, counted: tuple[str, Callable[[], int]]) -> None:
    compiler, count = counted
    cache = str(tmp_path / "cache")
    output(WEIR_CACHE_DIR=cache)
    assert output(WEIR_CXX=compiler, WEIR_CACHE_DIR=cache) == (RIGHT, "")
    assert count() == 1


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_read_of_an_output_is_refused_whichever_compiler_says_so(compiler: str, tmp_path: Path) -> None:
    found = shutil.which(compiler) or shutil.which(compiler + "-14")
    if found is None:
        pytest.skip(f"{compiler} is not installed")
    program = f"""
import weir
for body in {[*READS, "y = nothing; y = x"]}:
    try:
        weir.elementwise("T x", "T y", body)(weir.ones(3))
    except weir.ArgumentError as error:
        print(str(error).splitlines()[0])
"""
    environment = {**os.environ, "WEIR_CXX": found, "WEIR_CACHE_DIR": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=True
    ).stdout.splitlines()
    for line, text in zip(READS.values(), said, strict=False):
        assert f"reads the output y in line {line}, " in text
    assert "does not compile" in said[-1]
    assert len(said) == len(READS) + 1


def test_no_compiler(tmp_path: Path) -> None:
    empty = str(tmp_path)
    out, _ = output(WEIR_CXX="/nowhere/c++", WEIR_CACHE_DIR=empty)
    assert out.startswith('MissingLibrary the C++ compiler that WEIR_CXX names, "/nowhere/c++", cannot be run')
    assert "install the package g++" in out
    out, _ = output(PATH=empty, WEIR_CACHE_DIR=empty)
    assert out.startswith("MissingLibrary there is no C++ compiler (c++, g++, clang++)")
    assert "install the package g++" in out


def test_no_place_for_temporary_files(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    assert output(TMPDIR=str(not_a_folder / "none"), WEIR_CACHE_DIR=str(tmp_path)) == (RIGHT, ""), "/tmp is taken"


def test_a_compiler_that_crashes(tmp_path: Path) -> None:
    script = tmp_path / "crashes"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && echo one && exit 0\necho gone >&2\nkill -9 $$\n')
    script.chmod(0o755)
    out, _ = output(WEIR_CXX=str(script), WEIR_CACHE_DIR=str(tmp_path / "cache"))
    assert out.startswith(
        "ArgumentError the body of the element-wise kernel elementwise(float32 x -> float32 y) does not"
    )
    assert "gone" in out


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_each_compiler(tmp_path: Path, compiler: str) -> None:
    try:
        subprocess.run([compiler, "--version"], check=True, capture_output=True)
    except OSError:
        pytest.skip(f"{compiler} is not installed")
    assert output(WEIR_CXX=compiler, WEIR_CACHE_DIR=str(tmp_path)) == (RIGHT, "")


def test_threads_that_ask_for_one_kernel_at_once() -> None:
    import threading

    kernel = weir.elementwise("T x", "T y", "y = x + 17")
    seen: list[Any] = []

    def run() -> None:
        seen.append(kernel(weir.ones(4), stream=weir.Stream("cpu")).tolist())

    threads = [threading.Thread(target=run) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seen == [[18.0] * 4] * 6
