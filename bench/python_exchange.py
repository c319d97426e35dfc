"""What it costs to hand an array from one package to another: nanoseconds for each way, and its ratio to a peer's way.

The peers are NumPy, torch, JAX and, on a CUDA device, CuPy and cuda.core, as far as they are installed; of what is
missing a line says why. Arrays have 1024 elements: none of the ways copies, so that their size does not count. Compare
figures of one run only.

    ./run bench python
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import weir
from weir import _borrow

Call = Callable[[], object]
COUNT = 1024


class Row(NamedTuple):
    """One way of handing over, and the way of other packages that it is compared with."""

    what: str
    call: Call
    peer: str  # the `what` of another row; empty for those that are peers themselves


def loaded(name: str) -> Any:
    """The package; None, and a line that says so, if it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as reason:  # an import fails in many ways where a library or a driver is missing
        print(f"left out: {name} ({type(reason).__name__}: {reason})")
        return None


def entered(*arrays: Any, stream: weir.Stream) -> Call:
    def call() -> None:
        with weir.borrow(*arrays, write=[arrays[-1]], stream=stream):
            pass

    return call


def on_the_cpu(np: Any) -> list[Row]:
    a, w = np.zeros(COUNT, "float32"), weir.zeros(COUNT, "float32")
    s = weir.Stream()
    weir.synchronize()
    rows = [
        Row("numpy.from_dlpack(numpy)", lambda: np.from_dlpack(a), ""),
        Row("numpy.__dlpack__()", lambda: a.__dlpack__(max_version=(1, 0)), ""),
        Row("memoryview(numpy)", lambda: memoryview(a), ""),
        Row("weir.asarray(numpy)", lambda: weir.asarray(a), "numpy.from_dlpack(numpy)"),
        Row("weir.from_dlpack(numpy)", lambda: weir.from_dlpack(a), "numpy.from_dlpack(numpy)"),
        Row("weir.__dlpack__()", lambda: w.__dlpack__(max_version=(1, 0)), "numpy.__dlpack__()"),
        Row("numpy.from_dlpack(weir)", lambda: np.from_dlpack(w), "numpy.from_dlpack(numpy)"),
        Row("weir.numpy()", w.numpy, "numpy.from_dlpack(numpy)"),
    ]
    torch = loaded("torch")
    if torch is None:
        return [*rows, Row("borrow of two of numpy", entered(a, np.zeros(COUNT), stream=s), "numpy.from_dlpack(numpy)")]
    t, u = torch.zeros(COUNT), torch.zeros(COUNT)
    rows += [
        Row("torch.from_dlpack(torch)", lambda: torch.from_dlpack(t), ""),
        Row("numpy.from_dlpack(torch)", lambda: np.from_dlpack(t), ""),
        Row("torch.from_numpy(numpy)", lambda: torch.from_numpy(a), ""),
        Row("weir.asarray(torch)", lambda: weir.asarray(t), "torch.from_dlpack(torch)"),
        Row("torch.from_dlpack(weir)", lambda: torch.from_dlpack(w), "torch.from_dlpack(torch)"),
        Row("borrow of two of torch", entered(t, u, stream=s), "torch.from_dlpack(torch)"),
    ]
    jax = loaded("jax")
    if jax is not None:
        j = jax.numpy.zeros(COUNT)
        rows += [
            Row("jax.from_dlpack(torch)", lambda: jax.dlpack.from_dlpack(t), ""),
            Row("weir.asarray(jax)", lambda: weir.asarray(j), "torch.from_dlpack(torch)"),
            Row("jax.from_dlpack(weir)", lambda: jax.dlpack.from_dlpack(w), "jax.from_dlpack(torch)"),
        ]
    return rows


def on_cuda(device: weir.Device) -> list[Row]:
    torch, cupy, core = loaded("torch"), loaded("cupy"), loaded("cuda.core.utils")
    has_torch = torch is not None and torch.cuda.is_available()
    w = weir.zeros(COUNT, "float32", device=device)
    s = weir.Stream(device)
    weir.captures("none")
    weir.synchronize(device)
    rows = [Row("weir.__dlpack__() CUDA", lambda: w.__dlpack__(max_version=(1, 0)), "")]
    # Its constructor is deprecated, and slower.
    view = None if core is None else core.StridedMemoryView.from_dlpack
    if has_torch:
        t, u = torch.zeros(COUNT, device="cuda"), torch.zeros(COUNT, device="cuda")
        rows += [
            Row("torch.__dlpack__() CUDA", lambda: t.__dlpack__(stream=-1), ""),
            Row("torch.from_dlpack(torch) CUDA", lambda: torch.from_dlpack(t), ""),
            Row("weir.asarray(torch) CUDA", lambda: weir.asarray(t), "torch.from_dlpack(torch) CUDA"),
            Row("torch.from_dlpack(weir) CUDA", lambda: torch.from_dlpack(w), "torch.from_dlpack(torch) CUDA"),
            Row("borrow of two of torch, CUDA", entered(t, u, stream=s), "torch.from_dlpack(torch) CUDA"),
            # What of it are the switches of the packages' current streams, which are theirs.
            Row("the switches of a borrow, CUDA", lambda: _borrow._made_current(s).close(), ""),
        ]
        peer = "torch.from_dlpack(torch) CUDA"
        if view is not None:
            peer = "StridedMemoryView(torch)"
            rows += [
                Row(peer, lambda: view(t, stream_ptr=-1), ""),
                Row("StridedMemoryView(weir)", lambda: view(w, stream_ptr=-1), peer),
            ]
        rows += [Row("borrow of one of torch, CUDA", entered(t, stream=s), peer)]
    if cupy is not None:
        c = cupy.zeros(COUNT, "float32")
        peer = "torch.from_dlpack(cupy)" if has_torch else ""
        if view is not None:
            peer = "StridedMemoryView(cupy)"
            rows += [Row(peer, lambda: view(c, stream_ptr=-1), "")]
        rows += [
            Row("cupy.asarray(weir)", lambda: cupy.asarray(w), ""),
            Row("weir.asarray(cupy)", lambda: weir.asarray(c), peer),
        ]
        if has_torch:
            rows += [
                Row("torch.from_dlpack(cupy)", lambda: torch.from_dlpack(c), ""),
                Row("cupy.from_dlpack(torch)", lambda: cupy.from_dlpack(t), ""),
                Row("cupy.from_dlpack(weir)", lambda: cupy.from_dlpack(w), "cupy.from_dlpack(torch)"),
                Row(
                    "torch.from_dlpack(weir.share(cupy))",
                    lambda: torch.from_dlpack(weir.share(c)),
                    "torch.from_dlpack(cupy)",
                ),
            ]
    return rows


def elapsed(call: Call, calls: int) -> int:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return time.perf_counter_ns() - begin


def nanoseconds(rows: list[Row], calls: int, runs: int) -> dict[str, float]:
    """The median time of each way. They take turns, so that what else the machine does meets all of them alike."""
    times: dict[str, list[float]] = {row.what: [] for row in rows}
    for _ in range(runs + 1):
        for row in rows:
            nothing = elapsed(lambda: None, calls)
            times[row.what].append((elapsed(row.call, calls) - nothing) / calls)
            weir.synchronize()
    return {what: statistics.median(all_[1:]) for what, all_ in times.items()}


def report(rows: list[Row], calls: int, runs: int) -> None:
    costs = nanoseconds(rows, calls, runs)
    print(f"\n{'':38}{'ns':>8}    ratio")
    for row in rows:
        ratio = f"{costs[row.what] / costs[row.peer]:5.2f} of {row.peer}" if row.peer else ""
        print(f"{row.what:38}{costs[row.what]:8.0f}    {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000, help="calls in a row")
    parser.add_argument("--runs", type=int, default=15, help="runs, of which the median is taken")
    options = parser.parse_args()
    numpy = loaded("numpy")
    if numpy is not None:
        report(on_the_cpu(numpy), options.calls, options.runs)
    try:
        device = weir.Device("cuda:0")
    except weir.DeviceError as reason:
        print(f"\nleft out: CUDA ({reason})")
        return
    report(on_cuda(device), min(options.calls, 300), options.runs)  # fewer than the driver's queue holds


if __name__ == "__main__":
    main()
