"""Element-wise kernels beside NumPy, and beside Numba where it is installed: time by NumPy's time, so less than 1 is faster.

Usage: python_elementwise.py [LARGEST]
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

BODY = "y = 1 / (1 + exp(-(a * x + b)))"


def with_numpy(x, a, b, out):
    np.multiply(x, a, out=out)
    np.add(out, b, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.divide(1, out, out=out)


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


def main():
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    kernels = {
        "a * x + 1": (weir.elementwise("T x, T a", "T y", "y = a * x + 1"), None),
        "sigmoid": (weir.elementwise("T x, T a, T b", "T y", BODY), None),
    }
    print(f"{'':>10} {'elements':>11} {'cpu:inline':>10} {'cpu':>10} {'Numba':>10}   (1: as long as NumPy)")
    elements = 1000
    while elements <= largest:
        for name, (kernel, _) in kernels.items():
            x = np.linspace(0, 1, elements, dtype="float32")
            out = np.empty_like(x)
            more = (2.0,) if name != "sigmoid" else (2.0, 0.5)

            def numpy_call(x=x, out=out, name=name):
                if name == "sigmoid":
                    with_numpy(x, np.float32(2), np.float32(0.5), out)
                else:
                    np.multiply(x, np.float32(2), out=out)
                    np.add(out, np.float32(1), out=out)

            columns = []
            for device in ("cpu:inline", "cpu"):
                stream = weir.Stream(device)
                mine = weir.array(x, device=device)
                to = weir.empty(elements, "float32", device=device)

                def call(kernel=kernel, mine=mine, to=to, stream=stream, more=more):
                    kernel(mine, *more, out=to, stream=stream)
                    stream.synchronize()

                columns.append(ratio(call, numpy_call, elements))
            if numba is not None:
                body = (
                    (lambda x, a, b: np.float32(1) / (np.float32(1) + np.exp(-(a * x + b))))
                    if name == "sigmoid"
                    else (lambda x, a: a * x + np.float32(1))
                )
                compiled = numba.vectorize([f"float32({', '.join(['float32'] * (1 + len(more)))})"])(body)
                single = tuple(np.float32(one) for one in more)
                columns.append(ratio(lambda c=compiled, x=x, s=single, o=out: c(x, *s, out=o), numpy_call, elements))
            print(f"{name:>10} {elements:>11} " + " ".join(f"{one:10.3f}" for one in columns), flush=True)
        elements *= 10


if __name__ == "__main__":
    main()
