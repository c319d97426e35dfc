"""A kernel of Triton in a program with two streams: it is watched and ordered as torch's operators are."""

import torch
import triton
import triton.language as tl
import weir.torch


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


weir.torch.declare(double, writes=["out"])  # it only reads the others


def step(x: torch.Tensor, side: torch.cuda.Stream) -> torch.Tensor:
    out = torch.zeros_like(x)
    with torch.cuda.stream(side):
        double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out.sum()  # too early: nothing waits for the kernel


def main() -> None:
    if not torch.cuda.is_available():
        print("This example needs a CUDA device.")
        return
    x = torch.ones(1 << 20, device="cuda")
    side = torch.cuda.Stream()
    with weir.torch.check() as report:
        step(x, side)
    print(report)
    with weir.torch.safe():
        print(float(step(x, side)))


main()
