"""Arrays of Weir in functions and operators of torch and JAX on a GPU (X7, P2), with controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import weir
from cuda_packages import CYCLES, N, are_here, no_captures, torch  # noqa: F401

pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_functions_of_packages.py has such cases for the CPU",
    ),
    pytest.mark.usefixtures("no_captures"),
]


def written_late() -> weir.Array:
    """An array of ones, whose write comes after a kernel that spins."""
    held = torch.cuda.Stream()
    x = weir.zeros(N, "float32", device="cuda:0")
    with torch.cuda.stream(held):
        torch.cuda._sleep(CYCLES)
    with weir.adopt(held):
        x += 1
    return x


def ends_of(tensor: Any) -> list[float]:
    return [float(tensor[0]), float(tensor[N - 1])]


OPERATIONS: list[Callable[[Any, weir.Array], Any]] = [
    lambda t, x: t + x,
    lambda t, x: t.add_(x),
    lambda t, x: torch.cat([t, x])[N:],
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=["+", "in place", "in a list"])
def test_x7_torch_comes_after_what_weir_has_enqueued(operation: Callable[[Any, weir.Array], Any]) -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        t = torch.zeros(N, device="cuda")
        made = operation(t, written_late())
        assert made.is_cuda
        assert ends_of(made) == [1, 1]


def test_x7_control_a_tensor_that_was_taken_without_order_misses_it() -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        t = torch.zeros(N, device="cuda")
        x = written_late()
        made = t + torch.utils.dlpack.from_dlpack(x.__dlpack__(stream=-1, max_version=(1, 0)))
        assert ends_of(made) == [0, 0]
    weir.synchronize("cuda:0")


def test_x7_what_weir_does_later_comes_after_torch() -> None:
    x = weir.ones(N, "float32", device="cuda:0")
    with torch.cuda.stream(torch.cuda.Stream()):
        t = torch.zeros(N, device="cuda")
        torch.cuda._sleep(CYCLES)
        t += x
        x += 100
        assert ends_of(t) == [1, 1]
    assert x.numpy()[[0, N - 1]].tolist() == [101, 101]


def test_x7_control_without_order_torch_reads_what_weir_does_later() -> None:
    x = weir.ones(N, "float32", device="cuda:0")
    weir.synchronize("cuda:0")
    with torch.cuda.stream(torch.cuda.Stream()):
        t = torch.zeros(N, device="cuda")
        torch.cuda._sleep(CYCLES)
        t += x
        with weir.ordering("manual"):
            x += 100
        assert ends_of(t) == [101, 101]


@pytest.fixture
def jnp() -> Any:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    return jax.numpy


def test_x7_jax_gets_a_copy_after_what_weir_has_enqueued(jnp: Any) -> None:
    x = written_late()
    taken = [jnp.asarray(x), jnp.array(x), jnp.zeros(N, "float32") + x]
    x += 1
    for one in taken:
        assert one.devices() == {jnp.zeros(1).device}
        assert ends_of(one) == [1, 1]
    assert x.numpy()[0] == 2
