"""Exchange with NumPy 1.26, whose DLPack has no versions (X1, X2): tests of other files once more.

`./run test` installs it into the folder that WEIR_TEST_OLD_NUMPY names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Their arrays are read-only, or become so in this NumPy's hands, and its capsules cannot say that.
LEFT_OUT = "not array_api_strict and not mlx"
FOLDER = os.environ.get("WEIR_TEST_OLD_NUMPY", "")
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    not FOLDER, reason="WEIR_TEST_OLD_NUMPY names no folder with NumPy 1.26: ./run test does"
)


def with_old_numpy(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([FOLDER, os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_it_is_the_old_one() -> None:
    assert with_old_numpy("-c", "import numpy, weir; print(numpy.__version__)").startswith("1.26.")


@pytest.mark.parametrize(
    "name",
    [
        *("array_host", "array_values", "buffer_import", "calls_of_packages", "carried_types", "clients", "dlpack"),
        *("exchange_table", "fft", "foreign_operands", "foreign_use", "hostile", "linalg", "numba_functions"),
        *("sparse", "types"),
    ],
)
def test_x1_tests_pass_with_it(name: str) -> None:
    said = with_old_numpy("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", LEFT_OUT, f"test_{name}.py")
    assert " passed" in said
