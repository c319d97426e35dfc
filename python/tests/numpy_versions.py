"""What differs between NumPy 1.26 and later versions, for the tests that run with both (test_old_numpy.py)."""

from __future__ import annotations

import numpy as np

# NumPy 1.26 knows DLPack's capsules without a version alone: no read-only ones, and what it takes it does not write to.
IS_NUMPY_2 = not np.__version__.startswith("1.")
