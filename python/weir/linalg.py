"""Products of matrices, of arrays of Weir, NumPy, CuPy and PyTorch; shapes are those of numpy.matmul."""

from weir._weir.linalg import Matmul, matmul

__all__ = ["Matmul", "matmul"]
