"""Bodies of element-wise kernels, which are C++, and how they are compiled and kept (rules K1 to K4), beside NumPy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weir


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


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
