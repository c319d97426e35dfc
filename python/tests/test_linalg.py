"""Products of matrices of Weir, NumPy and other packages (P1 to P3, E1 to E4, E6, E9, E10)."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import weir
from eventually import eventually
from weir.linalg import Matmul, matmul
from weir.testing import Gate

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
SHAPES = [
    ((5, 7), (7, 3)),
    ((7,), (7,)),
    ((7,), (7, 3)),
    ((5, 7), (7,)),
    ((4, 5, 7), (7, 3)),
    ((4, 5, 7), (4, 7, 3)),
    ((2, 1, 5, 7), (3, 7, 4)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]


def type_of(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    a = random.standard_normal(shape)
    if "complex" in dtype:
        a = a + 1j * random.standard_normal(shape)
    return a.astype(type_of(dtype))


def wide(a: np.ndarray) -> np.ndarray:
    widened: np.ndarray = a.astype("complex128" if a.dtype.kind == "c" else "float64")
    return widened


def close(x: Any, expected: np.ndarray, dtype: str = "float64") -> bool:
    """Whether the norm of the difference is what rounding may do."""
    got = x.numpy(copy=True) if isinstance(x, weir.Array) else np.asarray(x)
    allowed = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-12)
    error = np.linalg.norm((wide(got) - expected).ravel())
    scale = float(np.linalg.norm(np.asarray(expected).ravel())) or 1.0
    return got.shape == expected.shape and got.dtype == type_of(dtype) and bool(error <= allowed * scale)


def gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_e10_products_are_numpys(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str, device: weir.Device
) -> None:
    a, b = numbers(left, dtype), numbers(right, dtype, 2)
    expected = np.matmul(wide(a), wide(b))
    x, y = weir.array(a, device=device), weir.array(b, device=device)
    for product in (matmul(x, y), x @ y):
        assert isinstance(product, weir.Array)
        assert product.device == device
        assert close(product, expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_e10_numpy_in_numpy_out(dtype: str) -> None:
    a, b = numbers((4, 5, 7), dtype), numbers((7, 3), dtype, 2)
    x = matmul(a, b)
    assert type(x) is np.ndarray
    assert close(x, wide(a) @ wide(b), dtype)
    assert close(matmul(a[:, ::-2, ::-1], b[::-1]), wide(a)[:, ::-2, ::-1] @ wide(b)[::-1], dtype)
    out = np.empty((4, 5, 3), type_of(dtype))
    assert matmul(a, b, out=out) is out
    assert close(out, wide(a) @ wide(b), dtype)


@pytest.mark.parametrize("epilog", [None, "bias", "relu", "gelu", "relu_bias", "gelu_bias"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_e10_epilogs_and_factors(epilog: str | None, dtype: str, device: weir.Device) -> None:
    a, b, c, bias = (numbers(s, dtype, i) for i, s in enumerate([(2, 5, 7), (7, 4), (5, 4), (4,)]))
    x, y, z, added = (weir.array(each, device=device) for each in (a, b, c, bias))
    expected = 2 * wide(a) @ wide(b) - 0.5 * wide(c)
    takes_bias = epilog is not None and "bias" in epilog
    how: dict[str, Any] = {"bias": added} if takes_bias else {}
    if "complex" in dtype and epilog not in (None, "bias"):
        with pytest.raises(weir.ArgumentError, match="relu and gelu are for real elements"):
            matmul(x, y, z, alpha=2, beta=-0.5, epilog=epilog, **how)
        return
    expected = expected + wide(bias) if takes_bias else expected
    if epilog is not None and "relu" in epilog:
        expected = np.maximum(expected, 0)
    elif epilog is not None and "gelu" in epilog:
        expected = gelu(expected)
    assert close(matmul(x, y, z, alpha=2, beta=-0.5, epilog=epilog, **how), expected, dtype)


def test_e10_a_bias_for_each_row(device: weir.Device) -> None:
    a, b, bias = numbers((4, 4)), numbers((4, 4), seed=2), numbers((4, 1), seed=3)
    x, y = weir.array(a, device=device), weir.array(b, device=device)
    added = weir.array(bias, device=device)
    assert close(matmul(x, y, epilog="bias", bias=added), a @ b + bias)
    assert close(matmul(x, y, epilog="bias", bias=added[:, 0]), a @ b + bias[:, 0])


def test_factors_of_numpy_and_complex_ones() -> None:
    a = numbers((3, 3), "complex128")
    assert close(matmul(a, a, alpha=np.float32(2)), 2 * a @ a, "complex128")
    assert close(matmul(a, a, a, alpha=1j, beta=np.complex128(2 - 1j)), 1j * (a @ a) + (2 - 1j) * a, "complex128")


def test_operator_takes_arrays_of_numpy(device: weir.Device) -> None:
    a, b = numbers((3, 4)), numbers((4, 5), seed=2)
    x, y = weir.array(a, device=device), weir.array(b, device=device)
    for product in (x @ b, a @ y, np.matmul(a, y)):
        assert isinstance(product, weir.Array)
        assert product.device == device
        assert close(product, a @ b)
    square = numbers((4, 4), seed=3)
    kept = x
    x @= weir.array(square, device=device)
    assert x is kept
    assert close(x, a @ square)


def test_operator_says_what_it_does_not_take() -> None:
    x = weir.ones((2, 2))
    with pytest.raises(weir.ArgumentTypeError, match=r"one operand is a number: write a \* x"):
        x @ 2
    with pytest.raises(weir.ArgumentTypeError, match=r"weir\.array"):
        x @ [[1.0, 2.0]]
    with pytest.raises(weir.ArgumentTypeError, match="these are int64; convert them with astype"):
        weir.arange(4) @ weir.arange(4)
    with pytest.raises(TypeError):
        x @ "text"

    class Knows:
        def __rmatmul__(self, other: object) -> str:
            return "knows"

    assert x @ Knows() == "knows"


def test_e2_products_return_before_the_work_is_done(device: weir.Device) -> None:
    a, b = numbers((4, 4)), numbers((4, 4), seed=2)
    s1, s2 = weir.Stream(device), weir.Stream(device)
    x, y = weir.array(a, device=device), weir.array(b, device=device)
    device.synchronize()
    with Gate() as held:
        held.hold(s1)
        first = matmul(x, y, stream=s1)
        second = matmul(first, y, stream=s2)
        third = matmul(x, y, stream=weir.Stream(device))  # control: two that read do not wait for each other
        assert close(third, a @ b)
        assert not first.ready
        assert not second.ready
    assert close(second, a @ b @ b)


def test_e3_operands_made_on_one_stream_multiplied_on_another(device: weir.Device) -> None:
    s1, s2 = weir.Stream(device), weir.Stream(device)
    operands = [weir.ones((3, 3), device=device) for _ in range(4)]
    device.synchronize()
    for which in range(4):
        with Gate() as held:
            held.hold(s1)
            weir.fill(operands[which], 2.0, stream=s1)
            a, b, c, bias = operands
            x = matmul(a, b, c, beta=1, epilog="bias", bias=bias, stream=s2)
            assert not x.ready, which
        assert x.numpy(copy=True)[0, 0] == (8.0 if which < 2 else 6.0), which
        weir.fill(operands[which], 1.0, stream=s2)
        device.synchronize()


def test_e4_a_plan_takes_the_elements_as_they_are_then() -> None:
    a, b = numbers((3, 3)), numbers((3, 3), seed=2)
    with Matmul(a, b) as plan:
        plan.plan()
        assert close(plan.execute(), a @ b)
        a *= 2
        assert close(plan.execute(), a @ b)
        b += 1
        assert close(plan.execute(), a @ b)


def test_e1_execution_elsewhere_blocks() -> None:
    a, b = numbers((5, 4)), numbers((4, 3), seed=2)
    x, y = weir.array(a), weir.array(b)
    product = matmul(x, y, execution="sim")
    assert product.ready
    assert product.device == weir.Device("cpu")
    weir.fill(y, 0)
    assert close(product, a @ b)
    with Matmul(weir.array(a), weir.array(b), execution="sim", stream=weir.Stream("sim:0")) as plan:
        plan.plan()
        product = plan.execute()
        assert product.ready
        assert close(product, a @ b)
    assert close(matmul(a, b, execution="sim"), a @ b)


def test_blocking_true_blocks(device: weir.Device) -> None:
    a = numbers((4, 4))
    x = weir.array(a, device=device)
    product = matmul(x, x, blocking=True)
    assert product.ready
    assert close(product, a @ a)


def test_results_go_into_out(device: weir.Device) -> None:
    a, b, c = numbers((3, 4)), numbers((4, 5), seed=2), numbers((3, 5), seed=3)
    x, y, z = (weir.array(each, device=device) for each in (a, b, c))
    assert matmul(x, y, z, beta=2, out=z) is z
    assert close(z, a @ b + 2 * c)
    large = weir.zeros((6, 5), device=device)
    matmul(x, y, out=large[::2])
    assert close(large[::2], a @ b)
    assert not large[1::2].numpy(copy=True).any()
    with pytest.raises(weir.ArgumentError, match=r"the result has shape \(3, 5\), the array for it \(6, 5\)"):
        matmul(x, y, out=large)


def test_p1_operands_and_factors_are_replaced(device: weir.Device) -> None:
    def constant(value: float, shape: tuple[int, ...] = (2, 2)) -> weir.Array:
        return weir.full(shape, value, "float64", device=device)

    how: dict[str, Any] = {"epilog": "bias", "bias": constant(1, (2,))}
    with weir.Stream(device), Matmul(constant(1), constant(1), constant(1), beta=1, **how) as plan:
        plan.plan()
        assert plan.execute().numpy(copy=True)[0, 0] == 4
        changes: list[tuple[dict[str, Any], float]] = [
            ({"a": constant(3)}, 8),
            ({"b": constant(2)}, 14),
            ({"c": constant(5)}, 18),
            ({"bias": constant(2, (2,))}, 19),
            ({"alpha": 2}, 31),
            ({"beta": 2}, 36),
        ]
        for change, expected in changes:
            plan.reset_operands(**change)
            assert (plan.execute().numpy(copy=True) == expected).all(), change
        with pytest.raises(weir.ArgumentError, match="the plan is for float64"):
            plan.reset_operands(constant(1, (3, 2)))
        assert (plan.execute().numpy(copy=True) == 36).all()


def test_p1_tuning(device: weir.Device) -> None:
    x = weir.ones((3, 3), device=device)
    with Matmul(x, x) as plan:
        with pytest.raises(weir.StateError, match="call plan before"):
            plan.autotune()
        plan.plan()
        tried = plan.autotune(candidates=3, repetitions=1)
        assert (tried > 0) == (device.kind == "cuda")
        assert (plan.execute().numpy(copy=True) == 3).all()
        with pytest.raises(weir.ArgumentError, match="both must be 1 or more"):
            plan.autotune(candidates=0)


def test_operands_of_numpy_are_memory_of_the_pool() -> None:
    """L6: limits, resources and statistics see the copies that calls make of arrays of NumPy."""
    a = np.ones((64, 64))
    counted = weir.memory.counting()
    before = weir.memory.stats("cpu")["live"]
    with weir.memory.use(counted):
        plan = Matmul(a, a)
    assert counted.counts()["live"] == {"count": 2, "bytes": 2 * a.nbytes}
    assert weir.memory.stats("cpu")["live"] >= before + 2 * a.nbytes
    plan.plan()
    a += 1
    with weir.memory.use(weir.memory.limiting(0)), pytest.raises(weir.OutOfMemory):
        plan.execute()  # the result has no room; the operands need no more
    assert (plan.execute() == 4 * 64).all()
    plan.free()
    eventually(lambda: counted.counts()["live"] == {"count": 0, "bytes": 0})
    for call in (lambda: Matmul(a, a), lambda: weir.fft.fft(a), lambda: weir.linalg.matmul(a, a)):
        with weir.memory.use(weir.memory.limiting(a.nbytes - 1)), pytest.raises(weir.OutOfMemory, match="limit"):
            call()


def test_e6_released_operands_are_let_go_of() -> None:
    weir.synchronize()
    before = weir.memory.stats("cpu")["live"]
    plan = Matmul(weir.ones((256, 256)), weir.ones((256, 1)))
    plan.plan()
    plan.execute().numpy()
    operands = 256 * 256 * 8
    assert weir.memory.stats("cpu")["live"] >= before + operands
    plan.release_operands()
    eventually(lambda: weir.memory.stats("cpu")["live"] < before + operands)
    plan.reset_operands(weir.ones((256, 256)), weir.ones((256, 1)))
    assert (plan.execute().numpy() == 256).all()


def test_e6_states() -> None:
    a, b = numbers((3, 3)), numbers((3, 3), seed=2)
    x, y = weir.array(a), weir.array(b)
    plan = Matmul(x, y)
    with pytest.raises(weir.StateError, match="call plan before execute"):
        plan.execute()
    plan.plan()
    assert close(plan.execute(), a @ b)
    plan.release_operands()
    plan.release_operands()
    assert repr(plan).endswith(", released>")
    with pytest.raises(
        weir.StateError, match=r"^Matmul: the operands were released; call reset_operands before execute"
    ):
        plan.execute()
    with pytest.raises(weir.StateError, match="give reset_operands all of them"):
        plan.reset_operands(x)
    plan.reset_operands(y, x)
    assert close(plan.execute(), b @ a)
    plan.free()
    plan.free()
    calls: list[Callable[[], Any]] = [
        plan.plan,
        plan.autotune,
        plan.execute,
        plan.reset_operands,
        plan.release_operands,
    ]
    for call in calls:
        with pytest.raises(weir.StateError, match="the Matmul is freed: make another one"):
            call()
    assert plan.workspace_bytes == 0


def test_e7_the_workspace_goes_back_to_the_pool_early() -> None:
    apart = weir.ones((6, 6))[::2, ::2]  # goes by the workspace
    with Matmul(apart, apart) as plan:
        plan.plan()
        assert plan.workspace_bytes > 0
        x = plan.execute(release_workspace=True)
        assert plan.workspace_bytes == 0
        y = plan.execute()
        assert plan.workspace_bytes > 0
        assert close(x.numpy(), np.full((3, 3), 3.0))
        assert close(y.numpy(), np.full((3, 3), 3.0))
        with pytest.raises(weir.ArgumentTypeError, match="release_workspace"):
            plan.execute(release_workspace=1)  # type: ignore[arg-type]


def test_e6_an_exception_frees_the_plan() -> None:
    with pytest.raises(ZeroDivisionError), Matmul(weir.ones((2, 2)), weir.ones((2, 2))) as plan:
        plan.plan()
        raise ZeroDivisionError
    with pytest.raises(weir.StateError, match="freed"):
        plan.plan()


@pytest.mark.parametrize(("first", "second"), list(itertools.product(range(4), repeat=2)))
def test_e6_what_is_let_go_of_with_work_pending(first: int, second: int, device: weir.Device) -> None:
    a, b = numbers((6, 6)), numbers((6, 6), seed=2)
    s = weir.Stream(device)
    operands = [weir.array(a, device=device)[::2, ::2], weir.array(b, device=device)[:3, :3]]
    device.synchronize()
    with Gate() as held:
        held.hold(s)
        plan = Matmul(*operands, stream=s)
        plan.plan()
        x = plan.execute()
        ways: list[Callable[[], Any]] = [
            plan.release_operands,
            plan.free,
            operands.clear,
            lambda plan=plan: plan.reset_operands(*(weir.zeros((3, 3), device=device) for _ in range(2))),  # type: ignore[misc]
        ]
        for way in (ways[first], ways[second]):
            try:
                way()
            except weir.StateError:
                assert first == 1  # freed before
        del plan, ways, way
        gc.collect()
        weir.full((6, 6), 7.0, device=device)  # memory of what was dropped, perhaps
        assert not x.ready
    assert close(x, a[::2, ::2] @ b[:3, :3])


def test_e6_reference_counts_are_restored() -> None:
    operands = [weir.ones((3, 3)) for _ in range(4)]
    before = [sys.getrefcount(each) for each in operands]
    a, b, c, bias = operands
    plan = Matmul(a, b, c, beta=1, epilog="bias", bias=bias)
    plan.plan()
    plan.execute().numpy()
    kept = weakref.ref(plan)
    plan.release_operands()
    del a, b, c, bias
    assert [sys.getrefcount(each) for each in operands] == before
    del plan
    gc.collect()
    assert kept() is None


def test_s9_plans_print_what_they_are() -> None:
    plan = Matmul(weir.ones((2, 3), "float32"), weir.ones((3, 4)))
    assert repr(plan) == "<weir.linalg.Matmul of float32 (2, 3) and float64 (3, 4) on cpu>"
    plan.free()
    assert repr(plan) == "<weir.linalg.Matmul freed>"


def test_wrong_arguments_say_what_is_wanted() -> None:
    x = weir.ones((2, 2))
    wrong: list[tuple[Callable[[], Any], type[weir.Error], str]] = [
        (lambda: matmul(x, weir.ones((3, 2))), weir.ArgumentError, "the axis of b that it meets 3"),
        (lambda: matmul(x, x, x), weir.ArgumentError, "c is given without beta"),
        (lambda: matmul(x, x, beta=1), weir.ArgumentError, "beta is given without c"),
        (lambda: matmul(x, x, alpha=1j), weir.ArgumentError, "alpha is"),
        (lambda: matmul(x, x, alpha=10**400), weir.ArgumentError, "alpha is an integer beyond all numbers"),
        (lambda: matmul(x, x, x, beta=-(10**400)), weir.ArgumentError, "beta is an integer beyond all numbers"),
        (lambda: Matmul(x, x, stream="nonsense"), weir.ArgumentTypeError, "no stream"),
        (lambda: matmul(x, x, alpha="x"), weir.ArgumentTypeError, "alpha is 'x': pass a number"),  # type: ignore[arg-type]
        (lambda: matmul(x, x, alpha=weir.ones(())), weir.ArgumentTypeError, "pass a number"),  # type: ignore[arg-type]
        (lambda: matmul(x, x, epilog="tanh"), weir.ArgumentError, 'pass "bias", "relu"'),
        (lambda: matmul(x, x, epilog="bias"), weir.ArgumentError, "the epilog adds a bias, and none is given"),
        (lambda: matmul(x, x, bias=x), weir.ArgumentError, "a bias is given, and the epilog adds none"),
        (lambda: matmul(x, x, epilog="bias", bias={"bias": x}), weir.ArgumentTypeError, "pass a weir.Array"),
        (lambda: matmul(x, x, execution="gpu"), weir.ArgumentError, "gpu"),
        (lambda: matmul(x, x, blocking=False), weir.ArgumentError, 'pass "auto" or True'),
        (lambda: matmul(x, x, stream=weir.Stream("sim:0")), weir.ArgumentError, "pass a stream of cpu"),
        (lambda: matmul(x, x, memory_limit=-1), weir.ArgumentError, "memory"),
        (lambda: Matmul(x, x).reset_operands(np.ones((2, 2))), weir.ArgumentTypeError, "arrays of NumPy"),
        (lambda: matmul(np.ones((2, 2)), np.ones((2, 2)), out=np.ones((2, 3))), weir.ArgumentError, "out= has shape"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()


def test_arrays_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = numbers((3, 4)), numbers((4, 5), seed=2)
    x = matmul(torch.tensor(a), torch.tensor(b))
    assert isinstance(x, torch.Tensor)
    assert close(x.numpy(), a @ b)


def test_an_out_that_cannot_be_written_is_refused_before_the_work() -> None:
    a = np.eye(2)
    of_numpy = np.zeros((2, 2))
    of_numpy.flags.writeable = False
    before = weir.stats()["operations"]
    with pytest.raises(weir.ArgumentError, match="read-only"):
        weir.linalg.matmul(a, a, out=of_numpy)
    with pytest.raises(weir.ArgumentError, match="cannot be written"):
        weir.linalg.matmul(weir.asarray(a), weir.asarray(a), out=weir.asarray(of_numpy))
    assert weir.stats()["operations"] == before
