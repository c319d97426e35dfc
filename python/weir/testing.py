"""Tools for those who test programs that use streams."""

from weir._weir.testing import Gate, simulated

__all__ = ["Gate", "simulated"]
