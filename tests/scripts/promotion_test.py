#!/usr/bin/env python3
"""Check tests/data/promotion.txt against the NumPy that is installed; with --write, write it.

Each line is three names: two element types, and the one that NumPy's arithmetic between them has; "-" where it has none.
bfloat16 is ml_dtypes'. Exits with 77, "skipped", where one of the two packages is not installed.

Usage: promotion_test.py TABLE [--write]
"""

import sys
from pathlib import Path

try:
    import ml_dtypes
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def dtype(name):
    return numpy.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def promoted(a, b):
    try:
        return numpy.result_type(dtype(a), dtype(b)).name
    except TypeError:
        return "-"


def main():
    path = Path(sys.argv[1])
    lines = [f"{a} {b} {promoted(a, b)}" for a in NAMES for b in NAMES]
    if "--write" in sys.argv[2:]:
        path.write_text("\n".join(lines) + "\n")
        return 0
    wrong = [(old, new) for old, new in zip(path.read_text().splitlines(), lines, strict=True) if old != new]
    for old, new in wrong:
        print(f"the table says {old!r}, NumPy {numpy.__version__} {new!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
