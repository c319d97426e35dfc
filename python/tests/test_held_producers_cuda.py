"""Arrays of packages that are late, on a GPU (X3, X6; A2, A12): the work that their package has enqueued is held.

The streams of torch, CuPy, Numba and of a view of cuda.core are held by a kernel that spins. JAX does not say which
stream it works on: a program of JAX that takes long stands in for that.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import weir
from cuda_packages import N, are_here, cupy, held_on_device, no_captures, torch  # noqa: F401
from cuda_producers import MAKERS, Held, ends, torchs_stream

pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_foreign_memory_driver.py has such cases for the fake driver",
    ),
    pytest.mark.usefixtures("no_captures"),
]


@pytest.fixture(params=list(MAKERS))
def held(request: pytest.FixtureRequest) -> Iterator[Held]:
    """Everything that the tests do is done once: to load a kernel may wait for the device."""
    torchs, cupys = torch.cuda.current_stream(), cupy.cuda.get_current_stream()
    try:
        made = MAKERS[request.param]()
        torch.cuda.synchronize()
        made.add(0)
        x = weir.asarray(made.array)
        x *= 1
        (x * 10).numpy()
        torch.cuda.synchronize()
        yield made
        torch.cuda.synchronize()
    finally:
        torch.cuda.set_stream(torchs)
        cupys.use()


def test_a2_an_import_of_a_held_producer_comes_after_it_and_the_host_does_not_wait(held: Held) -> None:
    s = weir.Stream("cuda:0")
    with held_on_device(held.handle):
        held.add(1)
        x = weir.asarray(held.array)
        with s:
            res = x * 10
        assert not s.done, "the operation comes after the package's work, and no call waited for that"
    assert ends(res) == [10, 10]


def test_a12_a_live_import_sees_what_a_held_producer_did_before_and_not_what_it_does_after(held: Held) -> None:
    x, s = weir.asarray(held.array), weir.Stream("cuda:0")
    with held_on_device(held.handle):
        held.add(1)
        with s:
            res = x * 10
        held.add(2)
        assert not s.done
    assert ends(res) == [10, 10]
    torch.cuda.synchronize()
    assert ends(x) == [3, 3]


def test_a1_the_package_comes_after_an_operation_that_is_held(held: Held) -> None:
    """`res = kernel(arr); arr += 2`, with a kernel of Weir's that is late."""
    x, s = weir.asarray(held.array), weir.Stream("cuda:0")
    with s:
        res = x * 10
    s.synchronize()
    with held_on_device(s.handle):
        weir.copy(res, x, stream=s)
        held.add(2)
        done = torchs_stream(held.handle).query()
    assert not done, "the package's stream waits for the operation"
    assert ends(res) == [0, 0]
    torch.cuda.synchronize()
    assert ends(x) == [2, 2]


def test_a12_control_in_manual_ordering_neither_waits_for_the_other(held: Held) -> None:
    x, s = weir.asarray(held.array), weir.Stream("cuda:0")
    torch.cuda.synchronize()
    with weir.ordering("manual"), held_on_device(held.handle):
        held.add(1)
        with s:
            res = x * 10
        s.synchronize()
        seen = ends(res)
    assert seen == [0, 0]
    with weir.ordering("manual"), held_on_device(s.handle):
        weir.copy(res, x, stream=s)
        held.add(2)
        torchs_stream(held.handle).synchronize()
    assert ends(res) == [3, 3], "the package's next work came first"


def test_x6_an_operation_on_a_view_whose_package_names_no_stream_is_over_when_its_call_returns() -> None:
    """The same tensor, shown by an object that Weir does not know: what Weir writes is over at the call's return."""

    class Shown:
        def __init__(self, of: Any) -> None:
            self.of = of

        def __dlpack_device__(self) -> Any:
            return self.of.__dlpack_device__()

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.of.__dlpack__(**keywords)

    for shown in (Shown, lambda t: t):
        t = torch.zeros(N, device="cuda")
        torch.cuda.synchronize()
        x, s = weir.asarray(shown(t)), weir.Stream("cuda:0")
        weir.fill(x, 1, stream=s)
        s.synchronize()
        with held_on_device(s.handle):
            calls = threading.Thread(target=functools.partial(weir.fill, x, 2, stream=s), daemon=True)
            calls.start()
            calls.join(0.2 if shown is Shown else 2)  # a call that has to wait cannot have returned
            waits = calls.is_alive()
        calls.join()
        assert waits == (shown is Shown), "control: a tensor that Weir knows is handed back on torch's stream"
        torch.cuda.synchronize()
        assert t[[0, N - 1]].tolist() == [2, 2]


# --- JAX ----------------------------------------------------------------------------------------------------------

ROUNDS = 50_000


@pytest.fixture
def late_jax() -> Callable[[], Any]:
    """A function that gives an array of JAX that is ROUNDS everywhere, after about a second of the GPU's."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    count = jax.jit(lambda x: jax.lax.fori_loop(0, ROUNDS, lambda _, y: y + 1, x))
    zeros = jax.numpy.zeros(N, "float32")

    def late() -> Any:
        return count(zeros)

    first = late()
    (weir.asarray(first) * 10).numpy()  # compiles and loads all that the tests use
    return late


def test_a2_an_import_of_an_array_of_jax_comes_after_its_work(late_jax: Callable[[], Any]) -> None:
    """JAX hands over when it has enqueued its work, at times when that is over: no control is too early for certain."""
    y = late_jax()
    s = weir.Stream("cuda:0")
    x = weir.asarray(y)
    with s:
        res = x * 10
    assert ends(res) == [10.0 * ROUNDS, 10.0 * ROUNDS]


def test_x6_what_weir_reads_of_jax_is_kept_until_it_has_read_it(late_jax: Callable[[], Any]) -> None:
    """JAX uses memory again once its array is gone: the import keeps the array until the operation is over."""
    y = late_jax()
    x, s = weir.asarray(y), weir.Stream("cuda:0")
    with s:
        res = x * 10
    s.synchronize()
    with held_on_device(s.handle):
        weir.copy(res, x, stream=s)
        del x, y
        other = late_jax() * 0 - 1
        other.block_until_ready()
    assert ends(res) == [ROUNDS, ROUNDS]
