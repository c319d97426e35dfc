"""Sparse systems of linear equations, solved directly, for matrices of SciPy, CuPy and PyTorch, or of arrays."""

from weir._weir.sparse import DirectSolver, solve

__all__ = ["DirectSolver", "solve"]
