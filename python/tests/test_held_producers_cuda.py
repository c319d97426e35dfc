"""Arrays of packages that are late, on a GPU (X3, X6; A2, A12): the work that their package has enqueued is held.

The streams of torch, CuPy, Numba and of a view of cuda.core are held by a kernel that spins. JAX does not say which
stream it works on: a program of JAX that takes long stands in for that.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import weir
from cuda_packages import N, are_here, cupy, held_on_device, no_captures, torch  # noqa: F401

pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_foreign_memory_driver.py has such cases for the fake driver",
    ),
    pytest.mark.usefixtures("no_captures"),
]


class Held(NamedTuple):
    """An array of zeros of a package, and its work on one stream."""

    array: Any  # what Weir is given
    handle: int  # the stream's
    add: Callable[[float], None]  # enqueues `array += value` there
    keeps: object = None  # what has to live as long


def of_torch() -> Held:
    s = torch.cuda.Stream()
    t = torch.zeros(N, device="cuda")
    torch.cuda.set_stream(s)  # until the end of the test

    def add(value: float) -> None:
        t.add_(value)

    return Held(t, s.cuda_stream, add, s)


def of_cuda_core() -> Held:
    """A view of cuda.core's, of a tensor of torch's, by torch's stream. The work is torch's."""
    utils = pytest.importorskip("cuda.core.utils", reason="cuda.core is not installed")
    made = of_torch()
    view = utils.StridedMemoryView.from_dlpack(made.array, stream_ptr=made.handle)
    return made._replace(array=view, keeps=(made.array, made.keeps))


def of_cupy() -> Held:
    s = cupy.cuda.Stream(non_blocking=True)
    c = cupy.zeros(N, dtype=cupy.float32)
    s.use()  # until the end of the test

    def add(value: float) -> None:
        cupy.add(c, cupy.float32(value), out=c)

    return Held(c, s.ptr, add, s)


@functools.cache
def numbas_kernel() -> Any:
    cuda = importlib.import_module("numba.cuda")

    @cuda.jit  # type: ignore[untyped-decorator]
    def add_to(x: Any, value: Any) -> None:
        i = cuda.grid(1)
        if i < x.shape[0]:
            x[i] += value

    return add_to


def numba() -> Any:
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    try:
        importlib.import_module("numba.cuda.cudaimpl")
    except AttributeError as why:
        pytest.skip(f"this version of numba-cuda does not work with this NumPy: {why}")
    return cuda


def of_numba() -> Held:
    """A device array that was made on a stream, which its interface names."""
    cuda, numpy = numba(), importlib.import_module("numpy")
    s = cuda.external_stream(torch.cuda.Stream().cuda_stream)  # torch's streams live as long as the process
    d = cuda.to_device(numpy.zeros(N, numpy.float32), stream=s)
    s.synchronize()
    handle = int(getattr(s.handle, "value", s.handle))
    assert d.__cuda_array_interface__["stream"] == handle

    def add(value: float) -> None:
        numbas_kernel()[N // 256, 256, s](d, numpy.float32(value))

    return Held(d, handle, add, s)


def of_numba_by_default() -> Held:
    """A device array whose interface names no stream: Numba works on the legacy default stream then."""
    cuda, numpy = numba(), importlib.import_module("numpy")
    d = cuda.to_device(numpy.zeros(N, numpy.float32))
    cuda.synchronize()
    assert d.__cuda_array_interface__.get("stream") is None

    def add(value: float) -> None:
        numbas_kernel()[N // 256, 256](d, numpy.float32(value))

    return Held(d, 1, add)


MAKERS = {
    "torch": of_torch,
    "cupy": of_cupy,
    "numba": of_numba,
    "numba by default": of_numba_by_default,
    "cuda.core": of_cuda_core,
}


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


def torchs_stream(handle: int) -> Any:
    return torch.cuda.default_stream() if handle == 1 else torch.cuda.ExternalStream(handle)


def ends(x: weir.Array) -> list[float]:
    found: list[float] = x.numpy()[[0, N - 1]].tolist()
    return found


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
