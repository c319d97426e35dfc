"""What is loaded before its first use (rule K6): operations then do not wait for a stream that the program holds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import weir
from conftest import HAS_CUDA
from cuda_driver import CudaDriver

needs_fake = pytest.mark.skipif(
    not HAS_CUDA or not CudaDriver().is_fake, reason="only the fake driver is made to wait when it loads code"
)


class Held:
    """A stream whose work does not begin, on a driver that loads no code before that work is over."""

    def __init__(self) -> None:
        self.driver = CudaDriver()
        self.stream = weir.Stream("cuda:0")
        self._key = self.driver.hold(self.stream.handle)
        # On the stream itself: memory and kernels of this are there.
        weir.fill(weir.zeros(4, device="cuda:0", stream=self.stream), 1, stream=self.stream)
        self.driver.loading_waits(True)

    def open(self) -> None:
        self.driver.loading_waits(False)
        self.driver.open(self._key)


@needs_fake
def test_k6_prepared_types_load_nothing() -> None:
    weir.Device("cuda:0").prepare("float32")
    x = weir.ones((6, 8), "float32", device="cuda:0")
    held = Held()
    loads = held.driver.calls("cuModuleLoadDataEx")
    results = [x + x, x[::2, ::3] * 2, x.sum(axis=0), x.mean(), x < 2, -x, x.astype("int64"), x.T.copy()]
    assert held.driver.calls("cuModuleLoadDataEx") == loads
    held.open()
    assert [float(one.sum().item()) for one in results] == [96, 18, 48, 1, 48, -48, 48, 48]


@needs_fake
def test_what_nothing_prepared_waits() -> None:
    """The negative control of the tests here."""
    x = weir.ones(6, "uint16", device="cuda:0")
    held = Held()
    made: list[weir.Array] = []
    other = threading.Thread(target=lambda: made.append(x + x))
    other.start()
    while held.driver.waiting_loads() == 0:
        assert other.is_alive()
    held.open()
    other.join()
    assert made[0].tolist() == [2] * 6


@needs_fake
def test_k6_a_prepared_element_wise_kernel_loads_nothing() -> None:
    axpy = weir.elementwise("float x, float a, float b", "float y", "y = a * x + 0.0625f * b", name="axpy")
    x = weir.ones(6, "float32", device="cuda:0")
    assert axpy.prepare(x, 2, x) is None  # type: ignore[func-returns-value]
    held = Held()
    y = axpy(x, 3, x)
    held.open()
    assert y.tolist() == [3.0625] * 6


PROGRAM = """
import sys
import weir
from cuda_driver import CudaDriver

device = weir.Device("cuda:0")
driver = CudaDriver()
print(driver.calls("cuModuleLoadDataEx") > 0)
if "hold" in sys.argv:
    x = weir.ones(6, device=device)
    stream = weir.Stream(device)
    key = driver.hold(stream.handle)
    weir.fill(weir.zeros(4, device=device, stream=stream), 1, stream=stream)
    driver.loading_waits(True)
    y, total = x + x, x.sum()  # would not return if they loaded anything
    driver.open(key)
    print(y.tolist(), total.item())
"""


def run(*arguments: str, **environment: str) -> tuple[list[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=250,
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
    )
    return done.stdout.splitlines(), done.stderr


@needs_fake
def test_k6_a_device_has_the_usual_kernels_when_it_is_open() -> None:
    lines, errors = run("hold", WEIR_PREPARE="1")
    assert lines == ["True", "[2.0, 2.0, 2.0, 2.0, 2.0, 2.0] 6.0"]
    assert errors == ""


@needs_fake
def test_the_environment_leaves_them_out() -> None:
    assert run(WEIR_PREPARE="0") == (["False"], "")


@needs_fake
def test_a_device_opens_without_a_compiler() -> None:
    lines, errors = run(WEIR_PREPARE="1", WEIR_NVRTC_LIBRARY="/nonexistent/libnvrtc.so", WEIR_LOG="debug")
    assert lines == ["False"]
    assert "without the kernels of arrays" in errors
    assert "/nonexistent/libnvrtc.so" in errors


@needs_fake
def test_a_wrong_value_is_named() -> None:
    _, errors = run(WEIR_PREPARE="no", WEIR_NVRTC_LIBRARY="/nonexistent/libnvrtc.so")
    assert errors.startswith("weir: WEIR_PREPARE=no: ")
    assert "say 0" in errors


@pytest.mark.parametrize("name", ["cpu", "cpu:inline", "sim:0"])
def test_other_devices_have_nothing_to_load(name: str) -> None:
    weir.Device(name).prepare()
    weir.Device(name).prepare("float16", float)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("quaternion", "quaternion"),
        (weir.elementwise("float x", "float y", "y = x"), r"prepare\(\*inputs\)"),
        (3, "3"),
    ],
)
def test_what_is_no_type_is_refused(what: Any, words: str) -> None:
    with pytest.raises(weir.ArgumentTypeError, match=words):
        weir.Device("cpu").prepare(what)


def test_an_element_wise_kernel_is_compiled_for_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    k = weir.elementwise("T x, T a", "T y", "y = a * x - 0.5")
    x = weir.ones(4)
    k.prepare(x, 2)
    monkeypatch.setenv("WEIR_CXX", "/nowhere/c++")
    monkeypatch.setenv("WEIR_CACHE_DIR", str(tmp_path))
    assert k(x, 3).tolist() == [2.5] * 4
    with pytest.raises(weir.MissingLibrary):  # another combination is not there
        k(x, x)
    with pytest.raises(weir.ArgumentError, match="2 inputs, and got 1"):
        k.prepare(x)
