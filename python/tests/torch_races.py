"""Races of inference servers and training code of 2026, each rebuilt from its public report in a few lines of torch.

Work runs late where a kernel spins in front of it, so each race has one outcome on an otherwise idle device: without
the missing wait the value is wrong, every time. Run the mended program first: loading a kernel may wait for the device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

try:
    import torch as torch_itself
except ImportError:
    torch: Any = None
else:
    torch = torch_itself

N = 1 << 20  # elements of a tensor: 4 MiB, which the allocator gives back whole
CYCLES = 100_000_000  # some 50 ms of a kernel that only spins

Program = Callable[[bool], float]


@dataclass(frozen=True)
class TorchRace:
    """A race, and what weir.torch.check() is to say of it."""

    program: Program  # with its waits if the argument is true; returns what `value` does
    source: str  # the public report
    kind: str
    first: str  # text in the line of the first access
    second: str
    also: tuple[str, ...] = ()  # further kinds, which follow from the race
    right: float = 1.0  # what the program returns if it is ordered
    shows_without_waits: bool = True  # the racy program returns another value

    @property
    def name(self) -> str:
        """The name of its program."""
        return getattr(self.program, "__name__", "")

    def racy(self) -> float:
        """Runs the program as it was reported."""
        return self.program(False)

    def mended(self) -> float:
        """Runs the program with what was missing."""
        return self.program(True)


RACES: list[TorchRace] = []


def rebuilt(source: str, kind: str, first: str, second: str, **more: Any) -> Callable[[Program], Program]:
    """Adds the program to RACES."""

    def add(program: Program) -> Program:
        RACES.append(TorchRace(program, source, kind, first, second, **more))
        return program

    return add


@functools.cache
def side(number: int) -> Any:
    """A side stream, the same in all programs: with many streams the driver makes some wait for others."""
    return torch.cuda.Stream()


def slow() -> None:
    """Delays what the current stream gets next by some 50 ms."""
    torch.cuda._sleep(CYCLES)


def value(of: Any) -> float:
    """The value of all elements once the device is idle; NaN if they differ.

    A program calls it while it holds its tensors, so that none is freed early by accident.
    """
    torch.cuda.synchronize()
    least, most = float(of.min().item()), float(of.max().item())
    return least if least == most else math.nan


# Unordered accesses of two streams


@rebuilt("github.com/sgl-project/sglang/pull/26380 (May 2026)", "WAR", "out.add_(row)", "row.fill_(2.0)")
def scheduler_overwrites_a_row_of_the_forward_pass(mended: bool) -> float:
    """SGLang's overlap scheduler wrote tables for the next batch while the forward pass still read them."""
    forward, schedule = side(0), side(1)
    row, out = torch.full((N,), 1.0, device="cuda"), torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        slow()
        out.add_(row)
    if mended:
        schedule.wait_stream(forward)
    with torch.cuda.stream(schedule):
        row.fill_(2.0)  # the row goes to another request
    return value(out)


@rebuilt("github.com/vllm-project/vllm/pull/46278 (June 2026)", "RAW", "block.fill_(1.0)", "host.copy_(block")
def cache_is_stored_before_it_is_computed(mended: bool) -> float:
    """vLLM's SimpleCPUOffloadConnector copied KV blocks to the host that kernels of the step had yet to write."""
    compute, store = side(0), side(1)
    block, host = torch.zeros(N, device="cuda"), torch.zeros(N, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(compute):
        slow()
        block.fill_(1.0)
    if mended:
        store.wait_stream(compute)
    with torch.cuda.stream(store):
        host.copy_(block, non_blocking=True)
    return value(host)


@rebuilt("github.com/sgl-project/sglang/pull/36738 (August 2026)", "WAW", "page.fill_(2.0)", "page.copy_(saved")
def cache_is_loaded_into_a_page_that_is_still_written(mended: bool) -> float:
    """SGLang's HiCache restored KV into pages of a finished request whose last round was still writing them."""
    forward, load = side(0), side(1)
    page, saved = torch.zeros(N, device="cuda"), torch.full((N,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        slow()
        page.fill_(2.0)
    if mended:
        load.wait_stream(forward)
    with torch.cuda.stream(load):
        page.copy_(saved, non_blocking=True)
    return value(page)


@rebuilt(
    "github.com/deepspeedai/DeepSpeed/issues/8061 (June 2026)", "RAW", "bucket[0].add_(gradient)", "out.add_(bucket)"
)
def bucket_is_reduced_after_one_of_its_writers(mended: bool) -> float:
    """DeepSpeed's reduction waited for the stream of the last gradient hook, but two streams filled the bucket."""
    early, late, reduction = side(0), side(1), side(2)
    gradient = torch.full((N,), 1.0, device="cuda")
    bucket, out = torch.zeros(2, N, device="cuda"), torch.zeros(2, N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(early):
        slow()
        bucket[0].add_(gradient)
    with torch.cuda.stream(late):
        bucket[1].add_(gradient)
        reduction.wait_stream(torch.cuda.current_stream())
    if mended:
        reduction.wait_stream(early)
    with torch.cuda.stream(reduction):
        out.add_(bucket)
    return value(out)


@rebuilt(
    "github.com/NVIDIA/Megatron-LM/pull/3140 (January 2026)", "RAW", "parameter.copy_(updated", "out.add_(parameter)"
)
def event_is_recorded_on_the_other_copy_stream(mended: bool) -> float:
    """Megatron-LM's optimizer offload waited for an event of its device-to-host stream after a host-to-device copy."""
    main, to_host, to_device = side(0), side(1), side(2)
    parameter, out = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    updated = torch.full((N,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(to_device):
        slow()
        parameter.copy_(updated, non_blocking=True)
    copied = (to_device if mended else to_host).record_event()
    main.wait_event(copied)
    with torch.cuda.stream(main):
        out.add_(parameter)
    return value(out)


@rebuilt(
    "github.com/huggingface/diffusers/pull/13502 (April 2026)",
    "default-stream",
    "weight.copy_(on_host",
    "out.add_(weight)",
)
def forward_pass_does_not_wait_for_its_weights(mended: bool) -> float:
    """diffusers' group offloading copied weights on a transfer stream, for which the default stream did not wait."""
    transfer = side(0)
    weight, out = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    on_host = torch.full((N,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(transfer):
        slow()
        weight.copy_(on_host, non_blocking=True)
    if mended:
        torch.cuda.current_stream().wait_stream(transfer)
    out.add_(weight)
    return value(out)


@rebuilt(
    "github.com/Nerogar/OneTrainer/issues/1306 (February 2026)",
    "stale-event",
    "gradient.add_(weight)",
    "weight.copy_(next_weight",
)
def event_is_recorded_before_the_backward_pass(mended: bool) -> float:
    """OneTrainer's transfers waited for the end of a layer's forward pass; its backward pass still read the weights."""
    train, transfer = side(0), side(1)
    weight, next_weight = torch.full((N,), 1.0, device="cuda"), torch.full((N,), 2.0, pin_memory=True)
    out, gradient = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(train):
        out.add_(weight)
        used = train.record_event()
        slow()
        gradient.add_(weight)
        if mended:
            used.record(train)
    transfer.wait_event(used)
    with torch.cuda.stream(transfer):
        weight.copy_(next_weight, non_blocking=True)
    return value(gradient)


# Pinned memory between two streams


@rebuilt(
    "github.com/NVIDIA/Megatron-LM/issues/7398 (September 2026)",
    "RAW",
    "staging.copy_(activation",
    "reloaded.copy_(staging",
)
def activation_is_reloaded_before_it_is_offloaded(mended: bool) -> float:
    """Megatron-LM read a pinned buffer back while the copy of the activation into it was still under way."""
    compute, offload = side(0), side(1)
    activation, reloaded = torch.full((N,), 1.0, device="cuda"), torch.zeros(N, device="cuda")
    staging = torch.zeros(N, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(offload):
        slow()
        staging.copy_(activation, non_blocking=True)
        offloaded = offload.record_event()
    if mended:
        compute.wait_event(offloaded)
    with torch.cuda.stream(compute):
        reloaded.copy_(staging, non_blocking=True)
    return value(reloaded)


@rebuilt("github.com/pytorch/torchtitan/pull/2581 (March 2026)", "WAR", "reloaded.copy_(slab", "slab.copy_(activation")
def stream_waits_for_itself(mended: bool) -> float:
    """A change of torchtitan asked for the current stream inside of `with stream`: the offload waited for itself.

    So it overwrote the pinned slab that the step before was still reading. The change's tests found it.
    """
    compute, reload, offload = torch.cuda.current_stream(), side(0), side(1)
    activation, reloaded = torch.full((N,), 2.0, device="cuda"), torch.zeros(N, device="cuda")
    slab = torch.full((N,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(reload):
        slow()
        reloaded.copy_(slab, non_blocking=True)
    compute.wait_stream(reload)
    with torch.cuda.stream(offload):
        offload.wait_stream(compute if mended else torch.cuda.current_stream())
        slab.copy_(activation, non_blocking=True)
    return value(reloaded)


# The host, and pinned memory that a stream uses


@rebuilt("github.com/vllm-project/vllm/pull/36013 (March 2026)", "host", "accepted.copy_(on_device", "accepted.max()")
def host_reads_before_the_copy_has_arrived(mended: bool) -> float:
    """vLLM's host read how many speculated tokens were accepted while the copy into pinned memory was under way."""
    copies = side(0)
    on_device, accepted = torch.full((N,), 1.0, device="cuda"), torch.zeros(N, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(copies):
        slow()
        accepted.copy_(on_device, non_blocking=True)
        copied = copies.record_event()
    if mended:
        copied.synchronize()
    most = float(accepted.max().item())
    torch.cuda.synchronize()
    return most


@rebuilt(
    "github.com/NVIDIA/TensorRT-LLM/pull/15546 (June 2026)", "host", "on_device.copy_(offsets", "offsets.fill_(2.0)"
)
def host_refills_a_buffer_that_is_still_copied(mended: bool) -> float:
    """TensorRT-LLM's host, a step ahead, refilled the pinned block offsets before the step before had copied them."""
    copies = side(0)
    on_device, offsets = torch.zeros(N, device="cuda"), torch.full((N,), 1.0, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(copies):
        slow()
        on_device.copy_(offsets, non_blocking=True)
    if mended:
        offsets = torch.empty(N, pin_memory=True)  # torch keeps the old one until it is copied
    offsets.fill_(2.0)
    return value(on_device)


# Memory that is freed on one stream while another uses it. The allocator gives it to the next tensor of its stream and
# size, which overwrites it: a second race, with the new owner.


@rebuilt(
    "github.com/NVIDIA/TensorRT-LLM/pull/15265 (June 2026)",
    "use-after-free",
    "out.add_(scale)",
    "scale = torch.full(",
    also=("early-reuse",),
)
def tensor_is_handed_over_without_record_stream(mended: bool) -> float:
    """TensorRT-LLM's attention freed tensors of an auxiliary stream that the caller's stream was still to read."""
    main, auxiliary = side(0), side(1)
    out = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(auxiliary):
        scale = torch.full((N,), 1.0, device="cuda")
        made = auxiliary.record_event()
    main.wait_event(made)
    with torch.cuda.stream(main):
        slow()
        out.add_(scale)
    if mended:
        scale.record_stream(main)
    del scale
    with torch.cuda.stream(auxiliary):
        torch.full((N,), 2.0, device="cuda")
    return value(out)


@rebuilt(
    "github.com/pytorch/pytorch/pull/180665 (April 2026)",
    "use-after-free",
    "on_host.copy_(gradient",
    "gradient = torch.full(",
    also=("early-reuse",),
)
def gradient_is_freed_while_it_is_offloaded(mended: bool) -> float:
    """FSDP2 freed the result of a reduce-scatter while the all-reduce stream was still copying it to the host."""
    reduce_scatter, all_reduce = side(0), side(1)
    on_host = torch.zeros(N, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(reduce_scatter):
        gradient = torch.full((N,), 1.0, device="cuda")
    all_reduce.wait_stream(reduce_scatter)
    with torch.cuda.stream(all_reduce):
        slow()
        on_host.copy_(gradient, non_blocking=True)
        offloaded = all_reduce.record_event()
    if mended:
        reduce_scatter.wait_event(offloaded)
    del gradient
    with torch.cuda.stream(reduce_scatter):
        torch.full((N,), 2.0, device="cuda")
    return value(on_host)


@rebuilt(
    "github.com/huggingface/pytorch-image-models/pull/2784 (September 2026)",
    "use-after-free",
    "out.add_(batch)",
    "batch = batches[0].to(",
    also=("early-reuse",),
)
def batch_is_prefetched_into_one_that_is_still_read(mended: bool) -> float:
    """timm's loader copied the next batch into memory of the last one, which the model had yet to read."""
    main, prefetch = torch.cuda.current_stream(), side(0)
    batches = [torch.full((N,), 1.0, pin_memory=True), torch.full((N,), 2.0, pin_memory=True)]
    out = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(prefetch):
        batch = batches[0].to("cuda", non_blocking=True)
    main.wait_stream(prefetch)
    slow()
    out.add_(batch)
    del batch
    if mended:
        prefetch.wait_stream(main)  # in time: the memory is for this stream alone, which gets none before
    with torch.cuda.stream(prefetch):
        batches[1].to("cuda", non_blocking=True)
    return value(out)


@rebuilt(
    "github.com/ROCm/ATOM/pull/1956 (August 2026)",
    "early-reuse",
    "out.add_(former)",
    "staging.fill_(2.0)",
)
def staging_buffer_is_allocated_on_another_stream(mended: bool) -> float:
    """ATOM's LMCache connector allocated a buffer on the default stream, and wrote it first on its pack stream.

    Its memory had been freed in the order of the default stream, which was still to read the former owner.
    """
    main, pack = torch.cuda.current_stream(), side(0)
    out = torch.zeros(N, device="cuda")
    former = torch.full((N,), 1.0, device="cuda")
    torch.cuda.synchronize()
    slow()
    out.add_(former)
    del former
    with torch.cuda.stream(pack if mended else main):
        staging = torch.empty(N, device="cuda")
    with torch.cuda.stream(pack):
        staging.fill_(2.0)
    return value(out)
