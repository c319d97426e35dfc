"""torch and CuPy on a GPU, for tests of the exchange with them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import weir

N = 1 << 20
CYCLES = 200_000_000  # some 0.1 s of a kernel that only spins


def found(name: str) -> Any:
    """The package, which has no types here; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch, cupy = found("torch"), found("cupy")
are_here = torch is not None and cupy is not None and torch.cuda.is_available()


@pytest.fixture
def no_captures() -> Iterator[None]:
    """No capture runs, so that memory that was handed out comes back without a safe point."""
    weir.captures("none")
    yield
    torch.cuda.synchronize()
    weir.captures("unknown")


SPIN = """
extern "C" __global__ void spin(const volatile int* is_over, long long nanoseconds) {
    long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (*is_over == 0 && now - start < nanoseconds);
}
"""


@contextlib.contextmanager
def held_on_device(handle: int) -> Iterator[None]:
    """Keeps what is enqueued on the driver's stream from now on from running until the block ends, or for five seconds.

    By a kernel that spins: behind a gate, work does not get into the driver's queue, so that the stream's handle cannot
    be had. What waits for it on the host goes on after the five seconds, and finds the stream done.
    """
    kernel = cupy.RawKernel(SPIN, "spin")
    memory = cupy.cuda.alloc_pinned_memory(4)
    is_over = importlib.import_module("numpy").frombuffer(memory, "int32", 1)
    is_over[0] = 1
    current = cupy.cuda.get_current_stream()  # which the end of a `with` does not always give back
    launched_on = cupy.cuda.ExternalStream(handle)
    with launched_on:
        kernel((1,), (1,), (memory.ptr, cupy.int64(0)))  # loads it
    launched_on.synchronize()
    is_over[0] = 0
    with launched_on:
        kernel((1,), (1,), (memory.ptr, cupy.int64(5_000_000_000)))
    current.use()
    try:
        yield
    finally:
        is_over[0] = 1
        launched_on.synchronize()
