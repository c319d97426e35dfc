"""How much memory torch's allocator takes from the driver where streams use temporaries of the default stream, in MiB.

Each temporary of 64 MiB is made on the default stream, used on a side stream, and dropped; 8 for each side stream. Three
ways to make that right: `record_stream`; the default stream waits for the side stream before the drop; and
weir.torch.safe(), in which the program has neither waits nor `record_stream`. Needs a CUDA device.

    PYTHONPATH=build/release/python python bench/python_torch_memory.py
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import weir.torch

ELEMENTS = 16 * 1024 * 1024
MIB = 1024 * 1024


def with_record_stream(x: torch.Tensor, total: torch.Tensor, main: torch.cuda.Stream, side: torch.cuda.Stream) -> None:
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total.add_(x)
    x.record_stream(side)


def by_hand(x: torch.Tensor, total: torch.Tensor, main: torch.cuda.Stream, side: torch.cuda.Stream) -> None:
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total.add_(x)
    main.wait_stream(side)


def plain(x: torch.Tensor, total: torch.Tensor, main: torch.cuda.Stream, side: torch.cuda.Stream) -> None:
    with torch.cuda.stream(side):
        total.add_(x)


def reserved(
    streams: int, use: Callable[[torch.Tensor, torch.Tensor, torch.cuda.Stream, torch.cuda.Stream], None]
) -> int:
    main = torch.cuda.current_stream()
    sides = [torch.cuda.Stream() for _ in range(streams)]
    totals = [torch.zeros(ELEMENTS, device="cuda") for _ in sides]
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    for turn in range(8):
        for side, total in zip(sides, totals, strict=True):
            x = torch.full((ELEMENTS,), float(turn), device="cuda")
            use(x, total, main, side)
            del x
    most = torch.cuda.max_memory_reserved() - before
    torch.cuda.synchronize()
    for total in totals:
        if not bool((total == sum(range(8))).all()):
            raise SystemExit("a temporary was overwritten before it was used")
    return most


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("this needs a CUDA device")
    reserved(1, by_hand)
    print(f"{'streams':>8}{'record_stream':>16}{'by hand':>10}{'safe':>8}")
    for streams in (2, 4, 8):
        recorded = reserved(streams, with_record_stream)
        waited = reserved(streams, by_hand)
        with weir.torch.safe():
            safe = reserved(streams, plain)
        print(f"{streams:8}{recorded / MIB:16.0f}{waited / MIB:10.0f}{safe / MIB:8.0f}")


if __name__ == "__main__":
    main()
