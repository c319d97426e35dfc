"""weir.torch.safe(): batches are copied on one stream and used on another, without waits and record_stream."""

import torch
import weir.torch


def total(batches: list[torch.Tensor], weights: torch.Tensor) -> float:
    copies = torch.cuda.Stream()
    sums = torch.zeros(64, 1024, device="cuda")
    for batch in batches:
        with torch.cuda.stream(copies):
            on_device = batch.to("cuda", non_blocking=True)
        sums += on_device @ weights  # no wait_stream, no record_stream
    return float(sums.sum())


def main() -> None:
    if not torch.cuda.is_available():
        print("This example needs a CUDA device.")
        return
    weights = torch.ones(1024, 1024, device="cuda")
    batches = [torch.full((64, 1024), float(i)).pin_memory() for i in range(8)]
    with weir.torch.safe() as safe:
        found = total(batches, weights)
    print(found, safe.waits)


main()
