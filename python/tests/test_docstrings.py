"""The examples in the documentation of classes and functions run, with what they may take for granted."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import weir
from conftest import HAS_CUDA


def documented() -> Iterator[tuple[str, str]]:
    """The name and documentation of each public object, and of the members of classes and modules."""
    for name in weir.__all__:
        thing = getattr(weir, name)
        if name.startswith("__"):
            continue
        yield name, inspect.getdoc(thing) or ""
        if inspect.isclass(thing) or inspect.ismodule(thing):
            for member, value in sorted(vars(thing).items()):
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"{name}.{member}", inspect.getdoc(value) or ""


DOCUMENTED = dict(documented())
EXAMPLES = {name: text for name, text in DOCUMENTED.items() if ">>>" in text}


AXPY = """
extern "C" __global__ void axpy(const float* x, float* y, float a, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def surroundings(name: str) -> dict[str, Any]:
    """What an example may take for granted."""
    if name == "Kernel":
        if not HAS_CUDA:
            pytest.skip("there is no CUDA driver here, and WEIR_CUDA_DRIVER names none")
        x, y = (weir.ones(64, "float32", device="cuda:0") for _ in range(2))
        return {"source": AXPY, "blocks": 1, "n": 64, "x": x, "y": y, "s": weir.Stream("cuda:0")}
    if name == "kernel":
        pytest.importorskip("numba", reason="Numba is not installed")
    if name == "linalg.Matmul":
        return {**{name: weir.ones((4, 4)) for name in "abc"}, "s": weir.Stream()}
    if name == "sparse.DirectSolver":
        diagonal = (weir.ones(4), weir.arange(4, dtype="int32"), weir.arange(5, dtype="int32"), (4, 4))
        return {"a": diagonal, "b": weir.ones(4), "c": weir.ones(4), "other": weir.Stream()}
    return {
        **{name: weir.ones(4) for name in "xy"},
        **{name: weir.ones(4, "complex128") for name in "ac"},
        "numpy": numpy,
        "run": lambda: None,
        "s": weir.Stream(),
    }


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10, sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"weir": weir, **surroundings(name)}, name, name, 0)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(output)
