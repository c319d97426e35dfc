"""weir.torch.check(): a batch is copied on one stream and used on another, which does not wait for the copy."""

import torch
import weir.torch


def step(weights: torch.Tensor, batch: torch.Tensor, copies: torch.cuda.Stream) -> torch.Tensor:
    with torch.cuda.stream(copies):
        on_device = batch.to("cuda", non_blocking=True)
    return on_device @ weights  # too early: nothing waits for the copy


def main() -> None:
    if not torch.cuda.is_available():
        print("This example needs a CUDA device.")
        return
    weights = torch.ones(1024, 1024, device="cuda")
    batch = torch.ones(64, 1024).pin_memory()
    copies = torch.cuda.Stream()
    torch.cuda.synchronize()
    with weir.torch.check() as report:
        step(weights, batch, copies)
    print(report)


main()
