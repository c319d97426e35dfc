"""Tools for those who test programs that use streams."""

from weir._weir.testing import Gate, simulate_cuda, simulated

__all__ = ["Gate", "simulate_cuda", "simulated"]
