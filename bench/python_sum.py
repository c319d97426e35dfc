"""The sum of an array beside NumPy's, from the call to the result on the host: time by NumPy's time, so less than 1 is faster.

The two take turns; a number is the median of the ratios of neighbours, and in brackets the microseconds of both.

Usage: python_sum.py [LARGEST] [DEVICE]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import weir


def microseconds(call: Callable[[], object], times: int) -> float:
    """What one of so many calls in a row takes."""
    start = time.perf_counter_ns()
    for _ in range(times):
        call()
    return (time.perf_counter_ns() - start) / times / 1000


def compare(mine: Callable[[], object], theirs: Callable[[], object], elements: int) -> str:
    times = max(1, 100_000 // elements)
    mine()
    theirs()
    turns = [(microseconds(mine, times), microseconds(theirs, times)) for _ in range(41 if elements < 1e6 else 15)]
    ratio = statistics.median(a / b for a, b in turns)
    return (
        f"{ratio:6.2f} ({statistics.median(a for a, _ in turns):.0f}, {statistics.median(b for _, b in turns):.0f})"
    )


def main() -> None:
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    print(f"Weir on {device} by NumPy {np.__version__} (microseconds of both)")
    print(f"{'elements':>10} {'type':>8} {'all':>22} {'axis 0':>22} {'axis 1':>22} {'axis 0, turned':>22}")
    stream = weir.Stream(device)
    stream.__enter__()
    for elements in (1_000, 100_000, 10_000_000):
        if elements > largest:
            break
        rows = int(elements**0.5)
        for dtype in ("float32", "float64", "int32"):
            theirs = (np.random.default_rng(1).random((rows, rows)) * 100).astype(dtype)
            mine = weir.array(theirs, device=device)
            columns = []
            for axis, turned in ((None, False), (0, False), (1, False), (0, True)):
                x, y = (mine.T, theirs.T) if turned else (mine, theirs)

                def ours(x: weir.Array = x, axis: int | None = axis) -> None:
                    x.sum(axis=axis)
                    stream.synchronize()

                columns.append(compare(ours, lambda y=y, axis=axis: y.sum(axis=axis), rows * rows))  # type: ignore[misc]
            print(f"{rows * rows:>10} {dtype:>8} " + " ".join(f"{one:>22}" for one in columns), flush=True)


if __name__ == "__main__":
    main()
