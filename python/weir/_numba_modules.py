# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""The modules of Numba that Weir uses, which need not be installed."""

from __future__ import annotations

import importlib
from typing import Any

from weir._weir import MissingLibrary


def module_of(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        raise MissingLibrary(
            f"weir.kernel compiles Python by Numba, which cannot be imported ({reason}): pip install numba"
        ) from reason


numba = module_of("numba")
np = module_of("numpy")
boxing = module_of("numba.core.boxing")
cgutils = module_of("numba.core.cgutils")
errors = module_of("numba.core.errors")
extending = module_of("numba.core.extending")
ir = module_of("numba.core.ir")
models = module_of("numba.core.datamodel.models")
numba_arrays = module_of("numba.np.arrayobj")
as_dtype = module_of("numba.np.numpy_support").as_dtype
serialize = module_of("numba.core.serialize")
types = module_of("numba.core.types")
ARRAY: Any = types.Array
OPAQUE: Any = types.Opaque
INT64 = types.int64
