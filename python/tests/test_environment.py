"""Environment variables with invalid values: the process says so on its error output, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import weir

KERNEL = """
import weir
for name in ("f", "g"):
    weir.Kernel(f'extern "C" __global__ void {name}() {{}}', name, "", device="cuda:0")
"""

WORK = """
import weir
x = weir.zeros(4)
x += 1
for _ in range(3):
    weir.current_stream().synchronize()
    weir.host_task(print, weir.In(x))
"""


def complaints(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("WEIR_WATCHDOG", "x", "say a number of seconds, 0 for none"),
        ("WEIR_WATCHDOG", "nan", "say a number of seconds, 0 for none"),
        ("WEIR_WATCHDOG", "-1", "say a number of seconds, 0 for none"),
        ("WEIR_NVTX", "2", "say 1 to have them"),
        ("WEIR_CPU_THREADS", "x", "say a number from 1 to 1024"),
        ("WEIR_LOG", "foo", "say debug"),
        ("WEIR_VERIFY_ACCESS", "yes", "say 1 to have operations held to what they declare"),
    ],
)
def test_a_bad_value_is_told_once(name: str, value: str, accepted: str) -> None:
    told = complaints(WORK, **{name: value})
    assert len(told.splitlines()) == 1, told
    assert told.startswith(f"weir: {name}={value}: ")
    assert accepted in told


VERIFIED = """
import sys
import weir
x, y = weir.ones(4), weir.ones(4)
weir.host_task(lambda v: print(v.tolist(), file=sys.stderr), weir.Out(x), wait=True)
weir.host_task(lambda v: print(v.tolist(), file=sys.stderr), weir.In(y), wait=True)
"""


@pytest.mark.parametrize(("value", "expected"), [("1", "[nan, nan, nan, nan]"), ("0", "[1.0, 1.0, 1.0, 1.0]")])
def test_k1_what_is_declared_with_out_is_nan_before_where_access_is_verified(value: str, expected: str) -> None:
    assert complaints(VERIFIED, WEIR_VERIFY_ACCESS=value).splitlines() == [expected, "[1.0, 1.0, 1.0, 1.0]"]


def test_an_nvtx_library_that_is_not_there() -> None:
    told = complaints(WORK, WEIR_NVTX="1", WEIR_NVTX_LIBRARY="/no/such/library.so", NVTX_INJECTION64_PATH="")
    assert len(told.splitlines()) == 1, told
    assert "WEIR_NVTX_LIBRARY=/no/such/library.so" in told


def test_a_cache_that_cannot_be_written(cuda: weir.Device) -> None:
    told = complaints(KERNEL, WEIR_CACHE_DIR="/dev/null/kernels")
    assert len(told.splitlines()) == 1, told
    assert told.startswith("weir: WEIR_CACHE_DIR=/dev/null/kernels: compiled kernels cannot be kept there")


def test_a_cache_that_can_be_written(cuda: weir.Device, tmp_path: Path) -> None:
    assert complaints(KERNEL, WEIR_CACHE_DIR=str(tmp_path)) == ""
    assert len(list(tmp_path.iterdir())) == 2


def test_a_driver_that_is_not_there() -> None:
    program = 'import weir\ntry:\n    weir.Device("cuda:0")\nexcept weir.DeviceError as error:\n    print(error)\n'
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WEIR_CUDA_DRIVER": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for words in ("there is no device cuda:0", "WEIR_CUDA_DRIVER", "/nonexistent", "unset it"):
        assert words in done.stdout
