"""FFT and products of matrices through Weir, and through nvmath-python with arrays of CuPy, on cuda:0.

Both use cuFFT and cuBLASLt. Measured are nanoseconds a call: 50 calls, until all results are complete. The packages
take turns, and the ratio is the median over the rounds. Weir also orders what other streams do with the operands.

    ./run bench python
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import weir

Call = Callable[[], object]
ROUNDS = 31
CALLS = 50


def seconds(call: Call, settle: Call) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    settle()
    return time.perf_counter() - start


def compare(what: str, ours: Call, theirs: Call, settle: Call) -> None:
    """Prints both, and Weir's time by the other's."""
    for call in (ours, theirs):
        call()
        settle()
    pairs = [(seconds(ours, settle), seconds(theirs, settle)) for _ in range(ROUNDS)]
    mine, beside = (statistics.median(side) / CALLS * 1e9 for side in zip(*pairs, strict=True))
    low, middle, high = statistics.quantiles((a / b for a, b in pairs), n=4)
    print(f"{what:44}{mine:12.0f}{beside:14.0f}    {middle:.2f} [{low:.2f} .. {high:.2f}]")


def transforms(nvmath: Any, cupy: Any, settle: Call) -> None:
    for shape in ((1024,), (256, 1024), (4096, 1024)):
        theirs = cupy.ones(shape, dtype=cupy.complex64)
        ours = weir.ones(shape, "complex64", device="cuda:0")
        axes = [len(shape) - 1]
        compare(
            f"fft {shape}, one call",
            lambda ours=ours, axes=axes: weir.fft.fft(ours, axes=axes),  # type: ignore[misc]
            lambda theirs=theirs, axes=axes: nvmath.fft.fft(theirs, axes=axes),  # type: ignore[misc]
            settle,
        )
        with weir.fft.FFT(ours, axes=axes) as plan, nvmath.fft.FFT(theirs, axes=axes) as other:
            plan.plan()
            other.plan()
            compare(f"fft {shape}, execute of a plan", plan.execute, other.execute, settle)


def products(nvmath: Any, cupy: Any, settle: Call) -> None:
    advanced = nvmath.linalg.advanced
    for n in (32, 512, 4096):
        a, b = cupy.ones((n, n), dtype=cupy.float32), cupy.ones((n, n), dtype=cupy.float32)
        x, y = (weir.ones((n, n), "float32", device="cuda:0") for _ in range(2))
        compare(
            f"matmul {n} x {n}, one call",
            lambda x=x, y=y: weir.linalg.matmul(x, y),  # type: ignore[misc]
            lambda a=a, b=b: advanced.matmul(a, b),  # type: ignore[misc]
            settle,
        )
        with weir.linalg.Matmul(x, y) as plan, advanced.Matmul(a, b) as other:
            plan.plan()
            other.plan()
            compare(f"matmul {n} x {n}, execute of a plan", plan.execute, other.execute, settle)


def main() -> None:
    loaded: dict[str, Any] = {}
    for name in ("cupy", "nvmath", "nvmath.fft", "nvmath.linalg.advanced"):
        try:
            loaded[name] = importlib.import_module(name)
        except Exception as reason:  # an import fails in many ways where a library or a driver is missing
            print(f"left out: {name} ({type(reason).__name__}: {reason})")
            return
    cupy = loaded["cupy"]
    try:
        weir.Device("cuda:0").synchronize()
        cupy.cuda.Device(0).synchronize()
    except Exception as reason:
        print(f"left out: cuda:0 ({type(reason).__name__}: {reason})")
        return
    print(f"{'ns a call':44}{'weir':>12}{'nvmath':>14}    weir by nvmath")
    for each in (transforms, products):
        try:
            each(loaded["nvmath"], cupy, cupy.cuda.Device(0).synchronize)
        except Exception as reason:  # of a package whose libraries are missing
            print(f"left out: {each.__name__} ({type(reason).__name__}: {reason})")


if __name__ == "__main__":
    main()
