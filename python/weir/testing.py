"""Tools for tests of programs that use streams."""

from weir._weir.testing import Gate, simulate_cuda, simulated

__all__ = ["Gate", "simulate_cuda", "simulated"]
