"""Kernels of Python bodies beside functions of Numba that do the same: time by Numba's time, so less than 1 is faster.

"njit" is a loop on one thread, "prange" one on several (NUMBA_NUM_THREADS; give Weir as many by WEIR_CPU_THREADS). Each body runs on
`cpu:inline` beside njit, and on `cpu` beside prange; the caller waits for each launch. The last line is what a launch costs the caller.

Usage: python_kernel.py [LARGEST]
"""

import math
import statistics
import sys
import time

import numpy as np
import weir

try:
    import numba
except ImportError:
    numba = None


def axpy(i, a, x, y):
    y[i] = a * x[i] + y[i]


def wave(i, a, x, y):
    y[i] = math.sin(a * x[i]) + math.sqrt(x[i])


def orbit(i, a, x, y):
    """The escape time of a point: indices differ in cost."""
    real, imaginary, steps = -2 + 2.5 * x[i], a * x[i] - 0.5, 0
    z_real, z_imaginary = 0.0, 0.0
    while steps < 500 and z_real * z_real + z_imaginary * z_imaginary < 4:
        z_real, z_imaginary = z_real * z_real - z_imaginary * z_imaginary + real, 2 * z_real * z_imaginary + imaginary
        steps += 1
    y[i] = steps


def written_by_hand(body, parallel):
    """What a program has without Weir: a loop around the body."""
    inner = numba.njit(body)
    if parallel:

        @numba.njit(parallel=True)
        def loop(a, x, y):
            for i in numba.prange(x.size):
                inner(i, a, x, y)

    else:

        @numba.njit
        def loop(a, x, y):
            for i in range(x.size):
                inner(i, a, x, y)

    return loop


def seconds(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start


def ratio(call, beside, times):
    """The median of pairs: one run of Numba's, and right after it one of Weir's."""
    call()
    beside()
    pairs = [(seconds(beside, times), seconds(call, times)) for _ in range(15)]
    return statistics.median(mine / theirs for theirs, mine in pairs)


def main():
    if numba is None:
        print("left out: kernels of Python bodies (Numba, which compiles them, is not installed)")
        return
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    print(f"{'':>8} {'indices':>10} {'cpu:inline / njit':>18} {'cpu / prange':>14}   (1: as long as Numba)")
    for body in (axpy, wave, orbit):
        kernel = weir.kernel(body)
        elements = 1000
        while elements <= (largest if body is not orbit else largest // 10):
            values = np.linspace(0, 1, elements)
            columns = []
            for device, parallel in (("cpu:inline", False), ("cpu", True)):
                loop = written_by_hand(body, parallel)
                x, y, to = weir.array(values, device=device), weir.zeros(elements, device=device), np.zeros(elements)
                launch = kernel[weir.Range(elements), weir.Stream(device)]
                times = max(1, 300_000 // elements // (20 if body is orbit else 1))
                columns.append(
                    ratio(
                        lambda launch=launch, x=x, y=y: launch(2.0, x, y).wait(),
                        lambda loop=loop, to=to, values=values: loop(2.0, values, to),
                        times,
                    )
                )
            print(f"{body.__name__:>8} {elements:>10} {columns[0]:18.2f} {columns[1]:14.2f}", flush=True)
            elements *= 10

    kernel, x, y = weir.kernel(axpy), weir.ones(8), weir.ones(8)
    kernel[weir.Range(8)](2.0, x, y).wait()
    loop = written_by_hand(axpy, False)
    values, to = np.ones(8), np.ones(8)
    loop(2.0, values, to)
    times = 5000
    enqueue = min(seconds(lambda: kernel[weir.Range(8)](2.0, x, y), times) for _ in range(5)) / times
    weir.synchronize()
    call = min(seconds(lambda: loop(2.0, values, to), times) for _ in range(5)) / times
    print(f"a launch costs its caller {enqueue / call:.1f} times as much as the call of a jitted function with 8 indices")


if __name__ == "__main__":
    main()
