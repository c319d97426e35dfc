"""Arrays of random numbers."""

from weir._weir import random

__all__ = ["random"]
