"""Other packages as clients of the exchange (X1, X5, X6, X7): each that is installed, in both directions.

The light ones are in tests/requirements.txt; `./run test --interop` installs torch and JAX, too, and
`./run test --interop-heavy` those that are too large for each run. test_old_numpy.py runs this with NumPy 1.26.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import weir
from numpy_versions import IS_NUMPY_2


class Client(NamedTuple):
    """How a package makes an array of 0.0 to 5.0, takes one of Weir, and shows one as NumPy's."""

    module: str
    make: Callable[[Any], Any]  # of the module, which has no types here
    take: Callable[[Any, weir.Array], Any]
    show: Callable[[Any], Any] = np.asarray
    writes: bool = True  # whether it lets others write to what it shares
    copies: bool = False  # whether it copies what it takes
    word: str = "--interop"  # of ./run test, that installs it


def arrow_shown(x: Any) -> Any:
    return x.to_numpy(zero_copy_only=False) if hasattr(x, "to_numpy") else np.frombuffer(x)


CLIENTS = [
    Client("numpy", lambda np: np.arange(6.0), lambda np, x: np.from_dlpack(x)),
    Client("array_api_strict", lambda xp: xp.arange(6.0), lambda xp, x: xp.from_dlpack(x), np.from_dlpack),
    Client("tvm_ffi", lambda tvm: tvm.from_dlpack(np.arange(6.0)), lambda tvm, x: tvm.from_dlpack(x), np.from_dlpack),
    Client("pyarrow", lambda pa: pa.array(np.arange(6.0)), lambda pa, x: pa.py_buffer(x), arrow_shown, writes=False),
    Client("mlx.core", lambda mx: mx.arange(6.0), lambda mx, x: mx.array(x), writes=False, copies=True),
    Client(
        "cuda.core.utils",
        lambda core: core.StridedMemoryView.from_dlpack(np.arange(6.0), stream_ptr=-1),
        lambda core, x: core.StridedMemoryView.from_dlpack(x, stream_ptr=-1),
        np.from_dlpack,
    ),
    Client("torch", lambda torch: torch.arange(6.0), lambda torch, x: torch.from_dlpack(x)),
    Client(
        "jax",
        lambda jax: jax.device_put(np.arange(6.0), jax.devices("cpu")[0]),  # also where a GPU is its default
        lambda jax, x: jax.dlpack.from_dlpack(x),
        writes=False,
        copies=True,  # unless the memory happens to be aligned to 64 bytes
    ),
    Client(
        "tensorflow",
        lambda tf: tf.range(6.0),
        lambda tf, x: tf.experimental.dlpack.from_dlpack(x.__dlpack__()),
        writes=False,
        word="--interop-heavy",
    ),
    Client(
        "paddle",
        lambda paddle: paddle.arange(6, dtype="float32"),
        lambda paddle, x: paddle.utils.dlpack.from_dlpack(x),
        word="--interop-heavy",
    ),
    Client(
        "warp",
        lambda warp: warp.array(np.arange(6.0), dtype=float, device="cpu"),
        lambda warp, x: warp.from_dlpack(x),
        lambda x: x.numpy(),
        word="--interop-heavy",
    ),
]


@pytest.fixture(params=CLIENTS, ids=lambda one: one.module)
def client(request: pytest.FixtureRequest) -> tuple[Client, ModuleType]:
    one: Client = request.param
    try:
        return one, importlib.import_module(one.module)
    except ImportError as missing:
        pytest.skip(f"{one.module} is not installed ({missing}): ./run test {one.word} installs it")


def test_x6_weir_reads_what_the_package_has(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    assert (weir.asarray(one.make(module)) * 2).tolist() == [0, 2, 4, 6, 8, 10]


def test_x6_weir_writes_where_the_package_lets_it(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    of = one.make(module)
    x = weir.asarray(of)
    if one.writes:
        x += 1
        assert one.show(of).tolist() == [1, 2, 3, 4, 5, 6], "over when the call returns"
    else:
        with pytest.raises(weir.ArgumentError, match="for reading only"):
            x += 1
        assert one.show(of).tolist() == [0, 1, 2, 3, 4, 5]


def test_x7_the_package_reads_what_weir_writes(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    x = weir.arange(6.0)
    taken = one.take(module, x)
    assert one.show(taken).ravel().tolist() == [0, 1, 2, 3, 4, 5]
    x += 1
    if not one.copies:
        assert one.show(taken).ravel().tolist() == [1, 2, 3, 4, 5, 6], "no operation that conflicts is left pending"


def test_l4_what_was_taken_outlives_both_sides(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    x = weir.asarray(one.make(module))
    y = x + 1
    del x
    taken = one.take(module, y)
    del y
    others = [weir.zeros(6) for _ in range(10)]
    assert one.show(taken).ravel().tolist() == [1, 2, 3, 4, 5, 6]
    del others


def test_x6_operators_copies_and_host_tasks_take_its_arrays(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    ours = weir.full(6, 10.0, one_type(one, module))
    theirs = one.make(module)
    assert (ours + theirs).tolist() == [10, 11, 12, 13, 14, 15]
    weir.copy(ours, theirs)
    assert ours.tolist() == [0, 1, 2, 3, 4, 5]
    seen: list[float] = []
    weir.host_task(lambda values: seen.extend(values), weir.In(theirs), wait=True)
    assert seen == [0, 1, 2, 3, 4, 5]
    if one.writes:
        weir.fill(theirs, 7)
        assert (one.show(theirs) == 7).all()


def one_type(one: Client, module: ModuleType) -> str:
    """The element type of the package's arrays here."""
    return str(weir.asarray(one.make(module)).dtype)


def test_x6_a_borrow_lends_its_arrays(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    theirs = one.make(module)
    ours = weir.full(6, 10.0, one_type(one, module))
    with weir.borrow(theirs, ours, write=[ours]) as (of_theirs, of_ours):
        taken = np.from_dlpack(of_ours) if IS_NUMPY_2 else of_ours.numpy()
        taken += np.from_dlpack(of_theirs)
    assert ours.tolist() == [10, 11, 12, 13, 14, 15]
    with pytest.raises(weir.StateError):
        of_theirs.tolist()


def test_x8_what_is_shared_is_its_memory(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    theirs = one.make(module)
    shared = weir.share(theirs)
    if one.writes:
        weir.fill(theirs, 7)
        assert shared.tolist() == [7] * 6
    seen = one.show(one.take(module, shared)) if one.writes else np.from_dlpack(shared)
    assert seen.tolist() == one.show(theirs).tolist()


def test_x7_what_can_only_be_read_is_viewed_read_only(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    x = weir.asarray(one.make(module))
    for view in (x.numpy(), x.numpy(copy=False), np.asarray(x), np.asarray(memoryview(x))):
        assert view.flags.writeable == one.writes
        assert view.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    assert x.numpy(copy=True).flags.writeable


def test_array_copies_what_the_package_has(client: tuple[Client, ModuleType]) -> None:
    one, module = client
    theirs = one.make(module)
    copy = weir.array(theirs)
    copy += 1
    assert copy.tolist() == [1, 2, 3, 4, 5, 6]
    assert weir.array(theirs, "int32").tolist() == [0, 1, 2, 3, 4, 5]


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed: ./run test --interop installs it")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_array_copies_types_of_torch_that_numpy_has_not(name: str) -> None:
    torch = package("torch")
    x = weir.array(torch.ones(2, dtype=getattr(torch, name)))
    assert (str(x.dtype), [float(one) for one in x.numpy()]) == (name, [1, 1])


def test_x10_what_torch_does_not_hand_over_is_an_error_of_weir() -> None:
    torch = package("torch")
    wanted = {
        "meta": lambda: torch.ones(2, device="meta"),
        "gradient": lambda: torch.ones(2, requires_grad=True),
        "sparse": lambda: torch.ones(2).to_sparse(),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    }
    for make in wanted.values():
        of = make()
        for take in (weir.asarray, weir.from_dlpack, weir.array, lambda x: weir.ones(2) + x):
            with pytest.raises(weir.ExchangeError, match="torch does not hand over") as refused:
                take(of)
            assert refused.value.__cause__ is not None


def test_x7_arrays_of_jax_go_back_to_jax() -> None:
    jnp = package("jax.numpy")
    x = weir.asarray(jnp.arange(3.0))
    assert jnp.asarray(x).tolist() == [0, 1, 2]
    # Its from_dlpack asks for capsules without a version, which cannot say that memory of JAX is read-only.
    assert jnp.from_dlpack(x.copy()).tolist() == [0, 1, 2]
    assert (x + jnp.arange(3.0)).tolist() == [0, 2, 4]


# dpnp's arrays are in memory of a SYCL device, which it gives to others as copies alone.


@pytest.fixture(scope="module")
def dpnp() -> Any:
    try:
        module: Any = importlib.import_module("dpnp")
        module.arange(6, device="cpu")
    except Exception as missing:  # without a driver for OpenCL's CPU device dpctl raises errors of its own
        pytest.skip(f"dpnp is not installed, or has no device ({missing}): ./run test --interop-heavy installs it")
    return module


@pytest.mark.parametrize("memory", ["device", "shared", "host"])
def test_x9_arrays_of_dpnp_are_taken_as_copies(dpnp: Any, memory: str) -> None:
    theirs = dpnp.arange(6, dtype="float32", device="cpu", usm_type=memory)
    theirs += 1  # is in the queue, and may be pending
    x = weir.asarray(theirs)
    x *= 2
    assert x.tolist() == [2, 4, 6, 8, 10, 12]
    assert dpnp.asnumpy(theirs).tolist() == [1, 2, 3, 4, 5, 6]


def test_x9_what_must_share_memory_with_dpnp_is_refused_with_the_way_out(dpnp: Any) -> None:
    theirs = dpnp.arange(6, dtype="float32", device="cpu")
    uses: list[Callable[[], object]] = [
        lambda: weir.share(theirs),
        lambda: weir.zeros(6, "float32") + theirs,
        lambda: weir.borrow(theirs).__enter__(),
    ]
    for use in uses:
        with pytest.raises(weir.CopyError, match=r"pass weir\.asarray\(x\)"):
            use()
    assert (weir.zeros(6, "float32") + weir.asarray(theirs)).tolist() == [0, 1, 2, 3, 4, 5]


def test_x7_dpnp_takes_arrays_of_weir(dpnp: Any) -> None:
    x = weir.arange(6.0, dtype="float32")
    taken = dpnp.from_dlpack(x, device="cpu")
    x += 1
    assert dpnp.asnumpy(taken + 1).tolist() == [1, 2, 3, 4, 5, 6], "on its device: a copy"


def test_x2_a_queue_of_dpctl_is_no_stream_of_an_array_on_the_cpu(dpnp: Any) -> None:
    with pytest.raises(weir.ArgumentError, match="pass None or -1"):
        weir.arange(6.0).__dlpack__(stream=dpnp.arange(6, device="cpu").sycl_queue)


def test_torch_takes_the_memory_by_from_dlpack_and_by_as_tensor() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: ./run test --interop installs it")
    for take in (torch.from_dlpack, torch.as_tensor):
        x = weir.ones((2, 3))
        taken = take(x)
        assert (taken.dtype, tuple(taken.shape)) == (torch.float64, (2, 3))
        taken[0, 0] = 5
        assert x.tolist() == [[5, 1, 1], [1, 1, 1]]
    assert torch.tensor(weir.ones(3)).tolist() == [1, 1, 1]


def test_masked_arrays_lose_their_mask_as_in_numpy() -> None:
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    assert weir.asarray(masked).tolist() == np.asarray(masked).tolist() == [1, 2, 3]
    assert weir.asarray(masked.filled(0)).tolist() == [1, 0, 3]
