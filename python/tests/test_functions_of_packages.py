"""Arrays of Weir in functions and operators of torch and JAX, which compute themselves (X7, P2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from eventually import eventually
from host_waits import comes_to_wait
from weir.testing import Gate


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed: ./run test --interop installs it")


@pytest.fixture
def jnp() -> Any:
    return pytest.importorskip("jax.numpy", reason="JAX is not installed: ./run test --interop installs it")


@pytest.fixture
def w() -> weir.Array:
    """1.0, 2.0, 3.0."""
    return weir.arange(1.0, 4.0)


OPERATIONS: list[tuple[str, Callable[[Any, Any], Any], list[Any]]] = [
    ("+", lambda t, w: t + w, [11, 22, 33]),
    ("-", lambda t, w: t - w, [9, 18, 27]),
    ("*", lambda t, w: t * w, [10, 40, 90]),
    ("/", lambda t, w: t / w, [10, 10, 10]),
    ("**", lambda t, w: t**w, [10, 400, 27000]),
    ("%", lambda t, w: t % w, [0, 0, 0]),
    ("//", lambda t, w: t // w, [10, 10, 10]),
    ("<", lambda t, w: t < w, [False, False, False]),
    (">=", lambda t, w: t >= w, [True, True, True]),
    ("==", lambda t, w: t == w * 10, [True, True, True]),
    ("!=", lambda t, w: t != w * 10, [False, False, False]),
    ("@", lambda t, w: t @ w, 140),
]


@pytest.mark.parametrize(("operation", "result"), [pytest.param(op, r, id=name) for name, op, r in OPERATIONS])
def test_p2_an_operator_is_its_first_operands(
    torch: Any, w: weir.Array, operation: Callable[[Any, Any], Any], result: list[Any]
) -> None:
    made = operation(torch.tensor([10.0, 20.0, 30.0], dtype=torch.float64), w)
    assert isinstance(made, torch.Tensor)
    assert made.tolist() == result
    assert w.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("operation", "result"), [pytest.param(op, r, id=name) for name, op, r in OPERATIONS if name not in ("%", "//")]
)
def test_p2_an_operator_of_jax_is_jaxs(
    jnp: Any, w: weir.Array, operation: Callable[[Any, Any], Any], result: list[Any]
) -> None:
    made = operation(jnp.array([10.0, 20.0, 30.0]), w.astype("float32"))
    assert type(made).__module__.startswith("jax")
    assert made.tolist() == result


def test_p2_weirs_operators_stay_weirs(torch: Any, jnp: Any, w: weir.Array) -> None:
    of_jax = jnp.from_dlpack(np.ones(3))  # on the CPU, also where a GPU is JAX's default
    for other in (torch.ones(3), of_jax, np.ones(3)):
        assert isinstance(w + other, weir.Array)
        assert (w + other).tolist() == [2, 3, 4]
    w += torch.ones(3, dtype=torch.float64)
    assert w.tolist() == [2, 3, 4]
    assert isinstance(np.ones(3) + w, weir.Array), "NumPy gives way, as it does to every other package"


def test_p2_a_tensor_is_changed_in_place(torch: Any, w: weir.Array) -> None:
    t = torch.zeros(3, dtype=torch.float64)
    same = t
    t += w
    assert t is same
    assert same.tolist() == [1, 2, 3]
    t[:] = w * 2
    assert same.tolist() == [2, 4, 6]
    t.copy_(w)
    t[1:].mul_(w[1:])
    assert same.tolist() == [1, 4, 9]
    t[weir.asarray([0, 2])] = w[:2]
    assert same.tolist() == [1, 4, 2]


def test_p2_functions_of_torch_take_arrays_wherever_they_take_tensors(torch: Any, w: weir.Array) -> None:
    assert torch.cat([w, torch.zeros(1), w]).tolist() == [1, 2, 3, 0, 1, 2, 3]
    assert torch.stack((w, w)).shape == (2, 3)
    assert torch.sum(w).item() == 6
    assert torch.einsum("i,i->", w, w).item() == 14
    assert torch.nn.functional.relu(-w).tolist() == [0, 0, 0]
    assert torch.where(torch.tensor([True, False, True]), w, -w).tolist() == [1, -2, 3]
    assert torch.clamp(torch.full((3,), 2.0), min=w).tolist() == [2, 2, 3]


def test_p2_out_of_torch_may_be_an_array_of_weir(torch: Any, w: weir.Array) -> None:
    out = weir.zeros(3)
    returned = torch.add(torch.ones(3, dtype=torch.float64), w, out=out)
    assert out.tolist() == [2, 3, 4]
    assert returned.data_ptr() == torch.from_dlpack(out).data_ptr()


def test_p2_torch_records_what_is_done_to_its_tensors(torch: Any, w: weir.Array) -> None:
    t = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (t * w).sum().backward()
    assert t.grad.tolist() == [1, 2, 3]


def test_x7_torch_waits_for_what_is_pending(torch: Any, w: weir.Array) -> None:
    gate = Gate()
    with weir.Stream("cpu") as s:
        gate.hold(s)
        w += 10
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(torch.zeros(3) + w))
    thread.start()
    waited = comes_to_wait(thread)
    gate.open()
    thread.join()
    assert waited
    assert made[0].tolist() == [11, 12, 13]


def test_x7_nothing_shares_the_memory_afterwards(torch: Any, jnp: Any, w: weir.Array) -> None:
    torch.zeros(3) + w
    jnp.zeros(3) + w
    eventually(lambda: weir.explain(w).shared_with == [])
    kept = torch.relu_(w)
    assert weir.explain(w).shared_with != []
    del kept
    eventually(lambda: weir.explain(w).shared_with == [])


def test_x10_what_torch_does_not_take_is_an_error_that_names_the_function(torch: Any) -> None:
    with pytest.raises(weir.ExchangeError, match=r"torch\.add got an array of Weir, of float32 on sim:0"):
        torch.ones(3) + weir.ones(3, "float32", device="sim:0")
    with pytest.raises(weir.ExchangeError, match=r"torch\.cat got an array of Weir, of uint4 on cpu"):
        torch.cat([torch.ones(4), weir.empty(4, "uint4")])


def test_x7_jax_has_a_copy(jnp: Any, w: weir.Array) -> None:
    taken = [jnp.asarray(w), jnp.array(w), jnp.concatenate([w.astype("float32")])]
    w += 1
    assert [one.tolist() for one in taken] == [[1, 2, 3]] * 3


def test_x7_jax_waits_for_what_is_pending(jnp: Any, w: weir.Array) -> None:
    gate = Gate()
    with weir.Stream("cpu") as s:
        gate.hold(s)
        w += 10
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(jnp.zeros(3) + w))
    thread.start()
    waited = comes_to_wait(thread)
    gate.open()
    thread.join()
    assert waited
    assert made[0].tolist() == [11, 12, 13]


def test_x7_jax_takes_what_can_only_be_read(jnp: Any) -> None:
    x = weir.asarray(jnp.arange(3.0))  # JAX lets nobody write to it
    assert jnp.asarray(x).tolist() == [0, 1, 2]
    assert (jnp.ones(3) + x).tolist() == [1, 2, 3]
