"""Reductions of a program beside NumPy, and beside Numba where it is installed: time by NumPy's time, so less than 1 is faster.

Usage: python_reduction.py [LARGEST]
"""

import statistics
import sys
import time

import numpy as np
import weir

try:
    import numba
except ImportError:
    numba = None

KERNELS = {
    "sum": (weir.reduction("T x", "T y", "x", identity=0), lambda x, axis: x.sum(axis=axis)),
    "norm": (
        weir.reduction("T x", "T y", "x * x", identity=0, post="y = sqrt(a)"),
        lambda x, axis: np.sqrt((x * x).sum(axis=axis)),
    ),
    "max |x|": (weir.reduction("T x", "T y", "fabs(x)", "max(a, b)"), lambda x, axis: np.abs(x).max(axis=axis)),
}


def seconds(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start


def ratio(call, beside, elements):
    """The median of pairs: one run of NumPy's, and right after it one of the other."""
    times = max(1, 300_000 // elements)
    call()
    beside()
    pairs = [(seconds(beside, times), seconds(call, times)) for _ in range(5 if elements >= 10_000_000 else 21)]
    return statistics.median(mine / theirs for theirs, mine in pairs)


def numba_norm():
    @numba.njit
    def norm(x):
        total = x.dtype.type(0)
        for one in x.flat:
            total += one * one
        return np.sqrt(total)

    return norm


def main():
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    print(f"{'':>10} {'elements':>11} {'axis':>5} {'cpu:inline':>10} {'cpu':>10} {'Numba':>10}   (1: as long as NumPy)")
    elements = 10_000
    while elements <= largest:
        rows = int(elements**0.5)
        x = np.linspace(-1, 1, rows * rows, dtype="float32").reshape(rows, rows)
        for name, (kernel, beside) in KERNELS.items():
            for axis in (None, 0, 1):
                columns = []
                for device in ("cpu:inline", "cpu"):
                    stream = weir.Stream(device)
                    mine = weir.array(x, device=device)
                    to = kernel(mine, axis=axis)

                    def call(kernel=kernel, mine=mine, to=to, stream=stream, axis=axis):
                        kernel(mine, axis=axis, out=to, stream=stream)
                        stream.synchronize()

                    columns.append(f"{ratio(call, lambda b=beside, a=axis: b(x, a), elements):10.3f}")
                if numba is not None and name == "norm" and axis is None:
                    compiled = numba_norm()
                    columns.append(f"{ratio(lambda c=compiled: c(x), lambda b=beside: b(x, None), elements):10.3f}")
                print(f"{name:>10} {elements:>11} {axis!s:>5} " + " ".join(columns), flush=True)
        elements *= 10


if __name__ == "__main__":
    main()
