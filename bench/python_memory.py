"""How much memory a pool keeps where several streams do the work that one could do: Weir's pool beside torch's, in MiB.

The program of bench/pool.cpp (`reserved`): arrays of 64 KiB to 4 MiB, each made, filled twice and dropped on one of the streams in
turn, 64 in flight; the same arrays in the same order, however many streams there are. The figure is the most that the pool had from
the driver when 64 were in flight. Needs a CUDA device for torch; without one, or without torch, only Weir's row is printed.

    PYTHONPATH=build/release/python python bench/python_memory.py
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, cast

import weir

ROUNDS = 512
IN_FLIGHT = 64
KIB = 1024
MIB = 1024 * 1024
STREAMS = (1, 2, 4, 8)


def sizes() -> list[int]:
    """The elements, of 8 bytes each, of the arrays."""
    draw = random.Random(1)
    return [draw.randint(1, 64) * 64 * KIB // 8 for _ in range(ROUNDS)]


def kept_by_weir(streams: int, device: weir.Device) -> float:
    device.synchronize()
    weir.memory.trim(device)
    made = [weir.Stream(device) for _ in range(streams)]
    most = 0
    for turn, count in enumerate(sizes()):
        by = made[turn % streams]
        x = weir.empty(count, "float64", stream=by)
        weir.fill(x, 1, stream=by)
        weir.fill(x, 2, stream=by)
        del x
        if turn % IN_FLIGHT == IN_FLIGHT - 1:
            now = weir.memory.stats(device)
            most = max(most, now["live"] + now["pending"] + now["cached"])
            device.synchronize()
    return most / MIB


class TorchTensor(Protocol):
    """What is used of torch.Tensor."""

    def fill_(self, value: float) -> object: ...


class TorchCuda(Protocol):
    """What is used of torch.cuda."""

    def is_available(self) -> bool: ...
    def synchronize(self) -> None: ...
    def empty_cache(self) -> None: ...
    def memory_reserved(self) -> int: ...
    def Stream(self) -> object: ...
    def stream(self, by: object, /) -> AbstractContextManager[object]: ...


class Torch(Protocol):
    """What is used of the module torch."""

    @property
    def cuda(self) -> TorchCuda: ...
    @property
    def float64(self) -> object: ...
    def empty(self, count: int, /, *, dtype: object, device: str) -> TorchTensor: ...


def kept_by_torch(streams: int, torch: Torch) -> float:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    made = [torch.cuda.Stream() for _ in range(streams)]
    most = 0
    for turn, count in enumerate(sizes()):
        with torch.cuda.stream(made[turn % streams]):
            x = torch.empty(count, dtype=torch.float64, device="cuda")
            x.fill_(1)
            x.fill_(2)
            del x
        if turn % IN_FLIGHT == IN_FLIGHT - 1:
            most = max(most, torch.cuda.memory_reserved())
            torch.cuda.synchronize()
    return most / MIB


def print_row(name: str, kept: Callable[[int], float]) -> None:
    print(f"{name:<8}" + "".join(f"{kept(streams):>9.1f}" for streams in STREAMS))


def main() -> None:
    gpus = [each for each in weir.devices() if each.name.startswith("cuda")]
    device = gpus[0] if gpus else weir.devices()[0]
    print(f"MiB kept on {device.name}, by streams\n{'':<8}" + "".join(f"{streams:>9}" for streams in STREAMS))
    print_row("weir", lambda streams: kept_by_weir(streams, device))
    try:
        torch = cast(Torch, importlib.import_module("torch"))
    except ImportError as reason:
        print(f"left out: torch ({reason})")
        return
    if not torch.cuda.is_available():
        print("left out: torch (it has no CUDA device)")
        return
    print_row("torch", lambda streams: kept_by_torch(streams, torch))


if __name__ == "__main__":
    main()
