"""What it costs to watch a program of torch, and to keep it in order: the time of a step, divided by that of torch alone.

The peer is torch's own sanitizer (TORCH_CUDA_SANITIZER), beside torch alone in a process of its own, since it stays.
Each step is measured in rounds, in turn; the medians are compared. Steps are bound by launches: the device is waited for
at the end of each round.

    ./run bench torch    (or, on another machine with the package: python bench/python_torch.py)
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import weir
import weir.torch

with contextlib.suppress(ImportError):
    import triton.language as tl

Call = Callable[[], object]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Step(NamedTuple):
    what: str
    call: Call
    times: int  # in a round


def transformer() -> Call:
    """Forward and backward of one encoder layer: 4 sequences of 64 tokens, 256 features."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, device=DEVICE)
    x = torch.randn(4, 64, 256, device=DEVICE)

    def step() -> None:
        layer.zero_grad()
        layer(x).sum().backward()

    return step


class Block(torch.nn.Module):
    """A basic block of ResNet (He et al., 2015, section 3.3)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.short = (
            nn.Identity()
            if stride == 1
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def resnet() -> Call:
    """One training step of ResNet-18: 8 images of 64 by 64, SGD with momentum."""
    nn = torch.nn
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(channels, outputs, 1 if outputs == channels else 2), Block(outputs, outputs, 1)]
        channels = outputs
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    images = torch.randn(8, 3, 64, 64, device=DEVICE)
    labels = torch.randint(1000, (8,), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def launches() -> list[Step]:
    """Kernels of other packages, if they are installed."""
    if DEVICE != "cuda" or importlib.util.find_spec("triton") is None:
        return []
    triton: Any = importlib.import_module("triton")
    x, out = (torch.ones(1024, device=DEVICE) for _ in range(2))
    kernel = triton.jit(double)
    weir.torch.declare(kernel, writes=["out"])
    fused = torch.compile(lambda x: torch.relu(x * 2) + 1)
    return [
        Step("a kernel of Triton", lambda: kernel[(1,)](x, out, 1024, BLOCK=1024), 2000),
        Step("torch.compile, one kernel", lambda: fused(x), 1000),
    ]


def double(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def of_weir() -> list[Step]:
    """Operations of Weir on a tensor, on a stream of Weir's."""
    x = torch.ones(1024, device=DEVICE)
    shared = weir.asarray(x)

    def alone() -> None:
        nonlocal shared
        shared += 1

    def in_turn() -> None:
        alone()
        x.add_(1)

    return [Step("a += 1 of Weir's on a tensor", alone, 1000), Step("the same, and x.add_(1) in turn", in_turn, 1000)]


def steps() -> list[Step]:
    x, a, b = (torch.ones(1024, device=DEVICE) for _ in range(3))
    return [
        *launches(),
        *of_weir(),
        Step("x.add_(1)", lambda: x.add_(1), 4000),
        Step("a + b", lambda: a + b, 4000),
        Step("transformer layer, forward and backward", transformer(), 60),
        Step("ResNet-18, training step", resnet(), 12),
    ]


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds(step: Step) -> float:
    wait()
    start = time.perf_counter()
    for _ in range(step.times):
        step.call()
    wait()
    return (time.perf_counter() - start) / step.times


def checked(step: Step) -> float:
    with weir.torch.check() as report:
        taken = seconds(step)
    if report:
        raise SystemExit(f"{step.what}: there is no race in it, but weir.torch.check found one:\n{report}")
    return taken


def ordered(step: Step) -> float:
    with weir.torch.safe():
        return seconds(step)


def medians(step: Step, ways: list[Callable[[Step], float]], rounds: int) -> list[float]:
    for way in ways:
        way(step)
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, times in zip(ways, taken, strict=True):
            times.append(way(step))
    return [statistics.median(times) for times in taken]


def sanitized(rounds: int) -> None:
    """In a process of its own: torch alone, then torch's sanitizer, which stays."""
    alone = [medians(step, [seconds], rounds)[0] for step in steps()]
    sanitizer: Any = __import__("torch.cuda._sanitizer", fromlist=["enable_cuda_sanitizer"])
    sanitizer.enable_cuda_sanitizer()
    for one, step in zip(alone, steps(), strict=True):
        few = step._replace(times=max(2, step.times // 20))
        print(medians(few, [seconds], max(1, rounds // 3))[0] / one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="steps whose names hold this")
    parser.add_argument("--no-sanitizer", action="store_true", help="leave torch's sanitizer out")
    parser.add_argument("--sanitizer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.sanitizer:
        sanitized(arguments.rounds)
        return
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU"
    print(f"torch {torch.__version__}, {name}; medians of {arguments.rounds} rounds\n")
    peer: list[str] = []
    if DEVICE == "cuda" and not arguments.no_sanitizer:
        told = subprocess.run(
            [sys.executable, __file__, "--sanitizer", "--rounds", str(arguments.rounds)],
            check=True,
            capture_output=True,
            text=True,
        )
        peer = [f"{float(line):.1f}" for line in told.stdout.split()]
    print(f"{'':42}{'torch, us':>10}{'checked':>10}{'safe':>10}{'after':>10}{'sanitizer':>12}")
    for place, step in enumerate(steps()):
        if arguments.only in step.what:
            alone, watched, safe = medians(step, [seconds, checked, ordered], arguments.rounds)
            after = medians(step, [seconds], arguments.rounds)[0]
            sanitizer = peer[place] if peer else "left out"
            print(f"{step.what:42}{alone * 1e6:10.2f}{watched / alone:10.3f}{safe / alone:10.3f}{after / alone:10.3f}{sanitizer:>12}")


if __name__ == "__main__":
    main()
