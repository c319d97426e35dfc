"""What a call from Python costs: nanoseconds, beside NumPy, and beside torch and CuPy where they are installed.

Prints the median of several runs for each call, less what a call of an empty function takes. Compare figures of one
run only. On a machine with a GPU a second table has calls on cuda:0 beside those of cuda.core, CuPy and torch; of what
is missing a line says why.

    ./run bench python
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import python_peers
import weir


def nothing() -> None:
    pass


def elapsed(call: Callable[[], object], calls: int) -> int:
    """The nanoseconds that so many calls in a row take."""
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return time.perf_counter_ns() - begin


def nanoseconds(call: Callable[[], object], calls: int, runs: int, settle: Callable[[], object]) -> float:
    """The median over `runs` of the time of one call, of `calls` in a row; `settle` waits for them between the runs.

    Less what a function that does nothing takes in the same loop: the calls are made in functions without arguments.
    """
    times = []
    for _ in range(runs + 1):
        times.append((elapsed(call, calls) - elapsed(nothing, calls)) / calls)
        settle()
    return statistics.median(times[1:])


Add = Callable[..., None]


def add_work(add: Add) -> None:
    """Streams, events, host tasks; launches where there is a CUDA device."""
    for device in ("cpu", "cpu:inline", "cuda:0"):
        try:
            s, t = weir.Stream(device), weir.Stream(device)
        except weir.DeviceError:
            continue

        def enter(s: weir.Stream = s) -> None:
            with s:
                pass

        calls: dict[str, Callable[[], object]] = {
            "record": s.record,
            "record_wait": lambda s=s, t=t: t.wait(s.record()),  # type: ignore[misc]
            "with_stream": enter,
            "current_stream": lambda device=device: weir.current_stream(device),  # type: ignore[misc]
            "host_task": lambda s=s: weir.host_task(nothing, stream=s),  # type: ignore[misc]
        }
        if device == "cuda:0":
            try:
                kernel = weir.Kernel(python_peers.KERNEL, "nothing", python_peers.SIGNATURE)
            except weir.MissingLibrary:
                continue
            x, y = weir.ones(16, "float32", stream=s), weir.ones(16, "float32", stream=s)
            launcher = kernel[1, 32, s]
            calls["launch"] = lambda: launcher(x, y, 2.0, 16)
            calls["launch_method"] = lambda: kernel.launch(1, 32, x, y, 2.0, 16, stream=s)
        add(f"weir {device}", s.synchronize, **calls)


def cases() -> list[tuple[str, str, Callable[[], object], Callable[[], object]]]:
    """The operation, the package, what calls it, what waits for it."""
    found: list[tuple[str, str, Callable[[], object], Callable[[], object]]] = []

    def add(package: str, settle: Callable[[], object], **calls: Callable[[], object]) -> None:
        found.extend((name, package, call, settle) for name, call in calls.items())

    for device in ("cpu", "cpu:inline"):
        s = weir.Stream(device)
        s.__enter__()
        x, y = weir.ones(16, stream=s), weir.ones(16, stream=s)

        def in_place(x: weir.Array = x, y: weir.Array = y) -> None:
            x += y

        add(
            f"weir {device}",
            s.synchronize,
            empty=lambda: weir.empty(16),
            zeros=lambda: weir.zeros(16),
            add=lambda x=x, y=y: x + y,  # type: ignore[misc]
            in_place_add=in_place,
            add_number=lambda x=x: x + 2.0,  # type: ignore[misc]
            view=lambda x=x: x[2:8],  # type: ignore[misc]
            shape=lambda x=x: x.shape,  # type: ignore[misc]
            to_numpy=lambda x=x: x.numpy(),  # type: ignore[misc]
        )
    add_work(add)
    if importlib.util.find_spec("numpy"):
        import numpy

        a, b = numpy.ones(16), numpy.ones(16)

        def numpy_in_place() -> None:
            nonlocal a
            a += b

        add(
            "numpy",
            nothing,
            empty=lambda: numpy.empty(16),
            zeros=lambda: numpy.zeros(16),
            add=lambda: a + b,
            in_place_add=numpy_in_place,
            add_number=lambda: a + 2.0,
            view=lambda: a[2:8],
            shape=lambda: a.shape,
            to_numpy=lambda: numpy.asarray(a),
        )
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")

        device = "cuda" if torch.cuda.is_available() else "cpu"
        wait = torch.cuda.synchronize if device == "cuda" else nothing
        t, u = torch.ones(16, device=device), torch.ones(16, device=device)
        add(
            f"torch {device}",
            wait,
            empty=lambda: torch.empty(16, device=device),
            zeros=lambda: torch.zeros(16, device=device),
            add=lambda: t + u,
            in_place_add=lambda: t.add_(u),
            add_number=lambda: t + 2.0,
            view=lambda: t[2:8],
            shape=lambda: t.shape,
            to_numpy=lambda: t.cpu().numpy(),
        )
    if importlib.util.find_spec("cupy"):
        cupy: Any = importlib.import_module("cupy")

        c, d = cupy.ones(16), cupy.ones(16)

        def cupy_in_place() -> None:
            nonlocal c
            c += d

        add(
            "cupy",
            cupy.cuda.Device().synchronize,
            empty=lambda: cupy.empty(16),
            zeros=lambda: cupy.zeros(16),
            add=lambda: c + d,
            in_place_add=cupy_in_place,
            add_number=lambda: c + 2.0,
            view=lambda: c[2:8],
            shape=lambda: c.shape,
            to_numpy=lambda: c.get(),
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000, help="calls in a row")
    parser.add_argument("--runs", type=int, default=15, help="runs, of which the median is taken")
    options = parser.parse_args()
    table: dict[str, dict[str, float]] = {}
    packages: list[str] = []
    for name, package, call, settle in cases():
        if package not in packages:
            packages.append(package)
        table.setdefault(name, {})[package] = nanoseconds(call, options.calls, options.runs, settle)
    peers = [package for package in packages if not package.startswith("weir")]
    print(
        f"{'ns a call':16}"
        + "".join(f"{package:>16}" for package in packages)
        + "    weir cpu as a multiple of each peer"
    )
    for name, row in table.items():
        costs = "".join(f"{row[package]:16.0f}" if package in row else f"{'':16}" for package in packages)
        ratios = [f"{row['weir cpu'] / row[peer]:.2f} of {peer}" for peer in peers if peer in row and "weir cpu" in row]
        print(f"{name:16}{costs}    {', '.join(ratios)}")
    calls = min(options.calls, 400)  # the driver's queue does not fill up
    python_peers.report(lambda call: (elapsed(call, calls) - elapsed(nothing, calls)) / calls, 4 * options.runs)


if __name__ == "__main__":
    main()
