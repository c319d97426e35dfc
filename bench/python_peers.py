"""The same few calls on a CUDA device through Weir and through other packages, for python_overhead.py.

Each package that cannot be used here says why. Weir's launches are tracked: they order themselves, and keep what they
use alive.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import weir

Call = Callable[[], object]

KERNEL = 'extern "C" __global__ void nothing(const float* x, float* y, float a, long long n) {}'
SIGNATURE = "in float* x, inout float* y, float a, int64 n"
SMALL = 'extern "C" __global__ void small(const float* x, float* y, float a) {}'
SMALL_SIGNATURE = "in float* x, inout float* y, float a"
# Two arrays and 14 numbers.
_NUMBERS = [f"a{i}" for i in range(14)]
LARGE = (
    'extern "C" __global__ void large(const float* x, float* y, ' + ", ".join(f"float {a}" for a in _NUMBERS) + ") {}"
)
LARGE_SIGNATURE = "in float* x, inout float* y, " + ", ".join(f"float {a}" for a in _NUMBERS)


class LeftOutError(Exception):
    """Why a package, or one of its calls, is not measured."""


@dataclass
class Calls:
    """What a package is measured by: calls that enqueue, by what they do."""

    package: str
    settle: Call  # waits for what was enqueued
    calls: dict[str, Call]


def weir_calls() -> Calls:
    try:
        device = weir.Device("cuda:0")
    except (weir.DeviceError, weir.ArgumentError) as reason:
        raise LeftOutError(str(reason)) from None
    s, t = weir.Stream(device), weir.Stream(device)
    x, y = weir.ones(16, "float32", stream=s), weir.ones(16, "float32", stream=s)
    kernel = weir.Kernel(KERNEL, "nothing", SIGNATURE, device=device)
    launcher = kernel[1, 32, s]
    small = weir.Kernel(SMALL, "small", SMALL_SIGNATURE, device=device)[1, 32, s]
    large = weir.Kernel(LARGE, "large", LARGE_SIGNATURE, device=device)[1, 32, s]
    numbers = [2.0] * 14

    def enter() -> None:
        with t:
            pass

    def add() -> None:
        x.__iadd__(y)

    s.__enter__()
    return Calls(
        "weir",
        device.synchronize,
        {
            "launch": lambda: launcher(x, y, 2.0, 16),
            "launch of 3": lambda: small(x, y, 2.0),
            "launch of 16": lambda: large(x, y, *numbers),
            "record, wait": lambda: t.wait(s.record()),
            "with stream": enter,
            "empty, del": lambda: weir.empty(16, "float32"),
            "x += y": add,
        },
    )


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as reason:  # an import fails in many ways where a library or a driver is missing
        raise LeftOutError(f"import {name}: {type(reason).__name__}: {reason}") from None


def cuda_core_calls() -> Calls:
    core = imported("cuda.core")
    if not hasattr(core, "launch"):  # before 0.5 the names were elsewhere
        core = imported("cuda.core.experimental")
    numpy = imported("numpy")
    device = core.Device(0)
    device.set_current()
    s, t = device.create_stream(), device.create_stream()
    x, y = device.allocate(64, stream=s), device.allocate(64, stream=s)
    options = core.ProgramOptions(arch=f"sm_{device.arch}")

    def compiled(source: str, name: str) -> Any:
        return core.Program(source, "c++", options).compile("cubin").get_kernel(name)

    kernel, small, large = compiled(KERNEL, "nothing"), compiled(SMALL, "small"), compiled(LARGE, "large")
    config = core.LaunchConfig(grid=1, block=32)
    a, n = numpy.float32(2), numpy.int64(16)
    numbers = [a] * 14
    launch = core.launch
    return Calls(
        "cuda.core",
        device.sync,
        {
            "launch": lambda: launch(s, config, kernel, x, y, a, n),
            "launch of 3": lambda: launch(s, config, small, x, y, a),
            "launch of 16": lambda: launch(s, config, large, x, y, *numbers),
            "record, wait": lambda: t.wait(s.record()),
            "empty, del": lambda: device.allocate(64, stream=s).close(s),
        },
    )


def cupy_calls() -> Calls:
    cupy = imported("cupy")
    s, t = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    s.use()
    x, y = cupy.ones(16, "float32"), cupy.ones(16, "float32")
    kernel = cupy.RawKernel(KERNEL, "nothing")
    small, large = cupy.RawKernel(SMALL, "small"), cupy.RawKernel(LARGE, "large")
    two = cupy.float32(2)
    arguments = (x, y, two, cupy.int64(16))
    of_3, of_16 = (x, y, two), (x, y, *[two] * 14)

    def enter() -> None:
        with t:
            pass

    def add() -> None:
        x.__iadd__(y)

    return Calls(
        "cupy",
        cupy.cuda.Device().synchronize,
        {
            "launch": lambda: kernel((1,), (32,), arguments),
            "launch of 3": lambda: small((1,), (32,), of_3),
            "launch of 16": lambda: large((1,), (32,), of_16),
            "record, wait": lambda: t.wait_event(s.record()),
            "with stream": enter,
            "empty, del": lambda: cupy.empty(16, "float32"),
            "x += y": add,
        },
    )


def numba_calls() -> Calls:
    cuda = imported("numba.cuda")
    if not cuda.is_available():
        raise LeftOutError("numba.cuda.is_available() is False")
    numpy = imported("numpy")
    s = cuda.stream()
    x, y = cuda.to_device(numpy.ones(16, "float32")), cuda.to_device(numpy.ones(16, "float32"))

    def small(x: Any, y: Any, a: Any) -> None:
        pass

    names = ", ".join(["x", "y", *_NUMBERS])
    scope: dict[str, Any] = {}
    exec(f"def large({names}):\n    pass\n", scope)  # its parameters are those of LARGE
    small_on, large_on = cuda.jit(small)[1, 32, s], cuda.jit(scope["large"])[1, 32, s]
    two = numpy.float32(2)
    numbers = [two] * 14
    return Calls(
        "numba",
        s.synchronize,
        {
            "launch of 3": lambda: small_on(x, y, two),
            "launch of 16": lambda: large_on(x, y, *numbers),
        },
    )


def torch_calls() -> Calls:
    torch = imported("torch")
    if not torch.cuda.is_available():
        raise LeftOutError("torch.cuda.is_available() is False")
    s, t = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.set_stream(s)
    x, y = torch.ones(16, device="cuda"), torch.ones(16, device="cuda")
    scope = torch.cuda.stream

    def enter() -> None:
        with scope(t):
            pass

    return Calls(
        "torch",
        torch.cuda.synchronize,
        {
            "record, wait": lambda: t.wait_event(s.record_event()),
            "with stream": enter,
            "empty, del": lambda: torch.empty(16, device="cuda"),
            "x += y": lambda: x.add_(y),
        },
    )


def in_turns(
    timed: Callable[[Call], float], contestants: dict[str, tuple[Call, Call]], rounds: int
) -> dict[str, list[float]]:
    """Nanoseconds of each contestant's call in each round. They take turns: the machine's speed changes from time to time.

    A contestant that raises is left out, and says why.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, (call, settle) in contestants.items():
            if name not in times:
                continue
            try:
                times[name].append(timed(call))
                settle()
            except Exception as reason:
                print(f"left out: {name}: {type(reason).__name__}: {reason}")
                del times[name]
    return {name: of[1:] for name, of in times.items()}


def report(timed: Callable[[Call], float], rounds: int) -> None:
    """Prints each call of Weir's beside the others', with the medians of the ratios of each round."""
    print("\ncuda:0: ns a call; Weir as a multiple of each peer, by rounds: the median, and a quarter below and above")
    try:
        ours = weir_calls()
    except (LeftOutError, weir.Error) as reason:
        print(f"left out: weir on cuda:0: {reason}")
        return
    peers = []
    for make in (cuda_core_calls, cupy_calls, numba_calls, torch_calls):
        try:
            peers.append(make())
        except Exception as reason:  # whatever a package does where its libraries are missing or too old
            name = make.__name__.removesuffix("_calls").replace("_", ".")
            text = str(reason) if isinstance(reason, LeftOutError) else f"{type(reason).__name__}: {reason}"
            print(f"left out: {name}: {text}")
    for what in ours.calls:
        contestants = {of.package: (of.calls[what], of.settle) for of in (ours, *peers) if what in of.calls}
        times = in_turns(timed, contestants, rounds)
        mine = times.pop("weir")
        beside = []
        for name, theirs in times.items():
            low, middle, high = statistics.quantiles((a / b for a, b in zip(mine, theirs)), n=4)
            beside.append(f"{name} {statistics.median(theirs):.0f}, ratio {middle:.2f} [{low:.2f} .. {high:.2f}]")
        print(f"{what:16}weir {statistics.median(mine):.0f}    {'    '.join(beside) or 'nothing to compare with here'}")
