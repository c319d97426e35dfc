"""What tests of kernels with Python bodies share."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import weir

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")

N = 1000


@weir.kernel
def axpy(i: int, a: float, x: Any, y: Any) -> None:
    y[i] = a * x[i] + y[i]


@weir.kernel
def double(i: int, x: Any, y: Any) -> None:
    y[i] = 2 * x[i]


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def uses_of(kernel: Any) -> list[int]:
    """What was found in the body: 1 reads, 2 writes, 4 unclear, 8 each index writes its own element."""
    (only,) = kernel._its.compiled.values()
    found: list[int] = only.uses
    return found


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )


def failed(x: weir.Array) -> None:
    """Nothing of it is valid any more."""

    def fail(values: Any) -> None:
        raise ValueError("no such file")

    with pytest.raises(weir.OperationError):
        weir.host_task(fail, weir.Out(x)).wait()
