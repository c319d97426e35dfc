"""Sparse systems of SciPy, Weir and other packages (P1 to P3, E1 to E4, E6, E9, E10)."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import weir
from eventually import eventually
from weir.sparse import DirectSolver
from weir.testing import Gate

try:
    sparse: Any = importlib.import_module("scipy.sparse")
except ImportError:
    sparse = None

needs_scipy = pytest.mark.skipif(sparse is None, reason="SciPy is not installed")

DTYPES = ["float32", "float64", "complex64", "complex128"]
KINDS = ["general", "symmetric", "hermitian", "positive_definite"]
N = 24
Parts = tuple[Any, Any, Any, tuple[int, int]]


def matrix(kind: str = "general", dtype: str = "float64", n: int = N) -> np.ndarray:
    """A well conditioned matrix of that kind, most elements of which are 0; all of them."""
    random = np.random.default_rng(5)
    a = random.standard_normal((n, n)) * (random.random((n, n)) < 0.15)
    if "complex" in dtype:
        a = a + 1j * random.standard_normal((n, n)) * (a != 0)
    if kind == "symmetric":
        a = a + a.T
    elif kind != "general":
        a = a + a.conj().T
    a = a + np.diag(np.full(n, 12.0) * (1 if kind == "positive_definite" else (-1.0) ** np.arange(n)))
    return np.roll(a, 1, axis=0).astype(dtype) if kind == "general" else a.astype(dtype)


def parts(a: np.ndarray, index: str = "int32", triangle: str = "full") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, column indices and row offsets."""
    kept = {"full": a, "lower": np.tril(a), "upper": np.triu(a)}[triangle]
    rows, columns = np.nonzero(kept)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(a)))])
    return kept[rows, columns], columns.astype(index), offsets.astype(index)


def on_device(a: np.ndarray, device: weir.Device | str = "cpu", **how: str) -> Parts:
    """The same in arrays of Weir."""
    values, columns, offsets = (weir.array(part, device=device) for part in parts(a, **how))
    return values, columns, offsets, a.shape  # type: ignore[return-value]


def right_hand_side(dtype: str = "float64", columns: int | None = None, n: int = N) -> np.ndarray:
    random = np.random.default_rng(6)
    b = random.standard_normal((n,) if columns is None else (n, columns))
    return (b + 1j * random.standard_normal(b.shape) if "complex" in dtype else b).astype(dtype)


def close(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Whether x is what NumPy finds for all elements."""
    expected = np.linalg.solve(a.astype("complex128"), b.astype("complex128"))
    allowed = 200 * float(np.finfo(x.dtype).eps)
    return x.shape == b.shape and x.dtype == b.dtype and float(np.abs(x - expected).max()) < allowed


@needs_scipy
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_e10_solutions_of_scipys_matrices(kind: str, dtype: str) -> None:
    a, b = matrix(kind, dtype), right_hand_side(dtype)
    for make in (sparse.csr_matrix, sparse.csr_array):
        x = weir.sparse.solve(make(a), b, kind=kind)
        assert isinstance(x, np.ndarray)
        assert close(x, a, b)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_e10_solutions_where_the_operands_lie(kind: str, dtype: str, index: str, device: weir.Device) -> None:
    a, b = matrix(kind, dtype), right_hand_side(dtype, 3)
    for triangle in ("full",) if kind == "general" else ("full", "lower", "upper"):
        with weir.Stream(device):
            given = on_device(a, device, index=index, triangle=triangle)
            x = weir.sparse.solve(given, weir.array(b, device=device), kind=kind, triangle=triangle)
        assert isinstance(x, weir.Array)
        assert x.device == device
        assert close(x.numpy(copy=True), a, b)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("columns", [None, 1, 4])
def test_e9_right_hand_sides_of_either_order(
    order: Literal["C", "F"], columns: int | None, device: weir.Device
) -> None:
    a, b = matrix(), right_hand_side(columns=columns)
    assert close(weir.sparse.solve((*parts(a), a.shape), np.asarray(b, order=order)), a, b)
    turned = weir.array(b, device=device) if order == "C" or columns is None else weir.array(b.T, device=device).T
    with weir.Stream(device):
        assert close(weir.sparse.solve(on_device(a, device), turned).numpy(copy=True), a, b)


def test_e2_the_call_returns_before_its_work_is_done(device: weir.Device) -> None:
    s, other = weir.Stream(device), weir.Stream(device)
    a, b = matrix(), right_hand_side()
    given, right = on_device(a, device), weir.array(b, device=device)
    device.synchronize()
    with Gate() as held:
        held.hold(s)
        x = weir.sparse.solve(given, right, stream=s)
        y = weir.sparse.solve(given, x, stream=other)  # uses the solution at once, on another stream
        assert not x.ready
        assert not y.ready
        free = weir.sparse.solve(given, right, stream=weir.Stream(device))
        assert close(free.numpy(copy=True), a, b)  # control: what needs no ordering does not wait
        assert not x.ready
    assert close(x.numpy(copy=True), a, b)
    np.testing.assert_allclose(y.numpy(copy=True), np.linalg.solve(a, np.linalg.solve(a, b)), rtol=1e-9, atol=1e-9)


def doubled(mode: Literal["auto", "manual"], by_hand: bool, device: weir.Device) -> float:
    """How much of a solution is of values that another stream doubles before the factorization."""
    made, solving = weir.Stream(device), weir.Stream(device)
    a, b = matrix(), right_hand_side()
    given, right = on_device(a, device), weir.array(b, device=device)
    x: Any = None
    solver = DirectSolver(given, right, stream=solving)
    solver.plan()
    device.synchronize()
    with weir.ordering(mode), Gate() as held:
        held.hold(made)
        with made:
            given[0][:] = given[0] * 2
        if by_hand:
            solving.wait(made.record())
        solver.factorize()
        x = solver.solve()
        if mode == "manual" and not by_hand:
            solving.synchronize()
    device.synchronize()
    return float((np.linalg.solve(a, b) / x.numpy(copy=True)).mean().real)


def test_e3_values_made_on_one_stream_and_factorized_on_another(device: weir.Device) -> None:
    assert doubled("auto", False, device) == pytest.approx(2)
    assert doubled("manual", True, device) == pytest.approx(2)


def test_e3_control_without_ordering_the_factorization_comes_too_early(device: weir.Device) -> None:
    assert doubled("manual", False, device) == pytest.approx(1)


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_p3_phases_on_different_streams_are_ordered(mode: Literal["auto", "manual"], device: weir.Device) -> None:
    a, b = matrix(), right_hand_side()
    streams = [weir.Stream(device) for _ in range(3)]
    with weir.check(assume="manual") as report, weir.ordering(mode):
        given, right = on_device(a, device), weir.array(b, device=device)
        device.synchronize()
        solver = DirectSolver(given, right)
        with Gate() as held:
            held.hold(streams[0])
            solver.plan(stream=streams[0])
            solver.factorize(stream=streams[1])
            x = solver.solve(stream=streams[2])
            assert not x.ready
        device.synchronize()
        assert close(x.numpy(copy=True), a, b)
    assert len(report) == 0, report


@needs_scipy
def test_e4_each_phase_takes_the_elements_of_scipy_as_they_are_then() -> None:
    a, b = sparse.csr_matrix(matrix()), right_hand_side()
    with DirectSolver(a, b) as solver:
        solver.plan()
        a.data *= 2
        solver.factorize()
        x = solver.solve()
        assert close(x, a.toarray(), b)
        b += 1
        assert close(solver.solve(), a.toarray(), b)
        a.data *= 2
        solver.factorize()
        assert close(solver.solve(), a.toarray(), b)


def test_e1_execution_elsewhere_blocks() -> None:
    a, b = matrix(), right_hand_side(columns=2)
    given, right = on_device(a), weir.array(b)
    x = weir.sparse.solve(given, right, execution="sim")
    assert x.ready
    assert x.device == weir.Device("cpu")
    weir.fill(right, 0)
    assert close(x.numpy(), a, b)
    with DirectSolver(given, weir.array(b), execution="sim", stream=weir.Stream("sim:0")) as solver:
        solver.plan()
        solver.factorize()
        x = solver.solve()
        assert x.ready
        assert close(x.numpy(), a, b)
    assert close(weir.sparse.solve((*parts(a), a.shape), b, execution="sim"), a, b)


def test_blocking_true_blocks(device: weir.Device) -> None:
    a, b = matrix(), right_hand_side()
    x = weir.sparse.solve(on_device(a, device), weir.array(b, device=device), blocking=True)
    assert x.ready
    assert close(x.numpy(copy=True), a, b)


def test_e9_new_values_and_right_hand_sides(device: weir.Device) -> None:
    a, b, c = matrix(), right_hand_side(), right_hand_side(columns=2)
    given = on_device(a, device)
    with weir.Stream(device), DirectSolver(given, weir.array(b, device=device)) as solver:
        solver.plan()
        solver.factorize()
        assert close(solver.solve().numpy(copy=True), a, b)
        solver.reset_operands(b=weir.array(c, device=device))
        assert close(solver.solve().numpy(copy=True), a, c)
        solver.reset_operands((given[0] * 3, *given[1:]))
        with pytest.raises(weir.StateError, match="call factorize before solve"):
            solver.solve()
        solver.factorize()
        assert close(solver.solve().numpy(copy=True), 3 * a, c)
        other = np.diag(np.arange(1.0, N + 1))
        solver.reset_operands(on_device(other, device), weir.array(b, device=device))
        with pytest.raises(weir.StateError, match="call plan before factorize"):
            solver.factorize()
        solver.plan()
        solver.factorize()
        assert close(solver.solve().numpy(copy=True), other, b)


def test_e6_replaced_and_released_operands_are_let_go_of() -> None:
    n, columns = N, 10_000
    weir.synchronize()
    before = weir.memory.stats("cpu")["live"]
    solver = DirectSolver(on_device(matrix()), weir.ones((n, columns)))
    solver.plan()
    solver.factorize()
    solver.solve().numpy()
    right = n * columns * 8
    assert weir.memory.stats("cpu")["live"] >= before + right
    solver.reset_operands(b=weir.ones(n))
    eventually(lambda: weir.memory.stats("cpu")["live"] < before + right)
    solver.reset_operands(b=weir.ones((n, columns)))
    solver.release_operands()
    eventually(lambda: weir.memory.stats("cpu")["live"] < before + right)


def test_e6_states() -> None:
    a, b = matrix(), right_hand_side()
    given, right = on_device(a), weir.array(b)
    solver = DirectSolver(given, right)
    with pytest.raises(weir.StateError, match="DirectSolver: call plan before factorize"):
        solver.factorize()
    solver.plan()
    with pytest.raises(weir.StateError, match="call factorize before solve"):
        solver.solve()
    solver.factorize()
    solver.release_operands()
    solver.release_operands()
    with pytest.raises(weir.StateError, match="the right-hand side was released; call reset_operands before solve"):
        solver.solve()
    solver.reset_operands(b=right)
    assert close(solver.solve().numpy(), a, b)
    solver.free()
    solver.free()
    calls: list[Callable[[], Any]] = [
        solver.plan,
        solver.factorize,
        solver.solve,
        solver.reset_operands,
        solver.release_operands,
    ]
    for call in calls:
        with pytest.raises(weir.StateError, match="the DirectSolver is freed: make another one"):
            call()


def test_e6_an_exception_frees_the_solver() -> None:
    with pytest.raises(ZeroDivisionError), DirectSolver(on_device(matrix()), weir.array(right_hand_side())) as solver:
        solver.plan()
        raise ZeroDivisionError
    with pytest.raises(weir.StateError, match="freed"):
        solver.plan()


@pytest.mark.parametrize("first", range(4))
def test_e6_what_is_let_go_of_with_work_pending(first: int, device: weir.Device) -> None:
    a, b = matrix(), right_hand_side()
    for second in range(4):
        s = weir.Stream(device)
        operands = [on_device(a, device), weir.array(b, device=device)]
        device.synchronize()
        with Gate() as held:
            held.hold(s)
            solver = DirectSolver(*operands, stream=s)
            solver.plan()
            solver.factorize()
            x = solver.solve()
            ways: list[Callable[[], Any]] = [
                solver.release_operands,
                solver.free,
                operands.clear,
                lambda solver=solver: solver.reset_operands(b=weir.zeros(N, device=device)),  # type: ignore[misc]
            ]
            ways[first]()
            with contextlib.suppress(weir.StateError):
                ways[second]()
            del solver, ways
            gc.collect()
            weir.full((N,), 7.0, device=device)  # memory of what was dropped, perhaps
            assert not x.ready
        assert close(x.numpy(copy=True), a, b), (first, second)


def test_e6_reference_counts_are_restored() -> None:
    given, right = on_device(matrix()), weir.array(right_hand_side())
    before = [sys.getrefcount(each) for each in (*given[:3], right)]
    solver = DirectSolver(given, right)
    solver.plan()
    solver.factorize()
    solver.solve().numpy()
    kept = weakref.ref(solver)
    solver.release_operands()
    assert [sys.getrefcount(each) for each in (*given[:3], right)] == before
    del solver
    gc.collect()
    assert kept() is None


def test_e9_a_singular_matrix(device: weir.Device) -> None:
    dependent = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    x = weir.sparse.solve(on_device(dependent, device), weir.ones(3, device=device))
    with pytest.raises(weir.OperationError, match=r"sparse factorization.*the matrix is singular"):
        x.numpy(copy=True)
    with pytest.raises(weir.OperationError, match="the matrix is singular"):
        weir.sparse.solve((*parts(dependent), dependent.shape), np.ones(3))
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(weir.OperationError, match=r"not positive definite.*: name it symmetric, hermitian or general"):
        weir.sparse.solve((*parts(indefinite), indefinite.shape), np.ones(2), kind="positive_definite")


BAD = {
    "first offset": ([1, 1, 2], [0, 1], r"row_offsets\[0\] is 1, and must be 0"),
    "offsets that decrease": ([0, 3, 2], [0, 1], "offsets must not decrease"),
    "too few elements": ([0, 1, 3], [0, 1], "the last of the row offsets is 3, and there are 2 column indices"),
    "out of range": ([0, 1, 2], [0, 2], "is 2: it must be at least 0 and less than 2"),
    "negative": ([0, 1, 2], [-1, 1], "is -1: it must be at least 0"),
    "not sorted": ([0, 2, 2], [1, 0], r"column indices must increase within a row.*a\.sum_duplicates\(\)"),
    "duplicate": ([0, 2, 2], [1, 1], "column indices must increase within a row"),
}


@pytest.mark.parametrize("which", BAD)
def test_e9_bad_indices(which: str, device: weir.Device) -> None:
    offsets, columns, why = BAD[which]
    of_numpy = (np.ones(2), np.array(columns, "int32"), np.array(offsets, "int32"))
    with pytest.raises(weir.ArgumentError, match=why):  # a call that blocks looks before
        weir.sparse.solve((*of_numpy, (2, 2)), np.ones(2))
    of_weir = [weir.array(part, device=device) for part in of_numpy]
    x = weir.sparse.solve((*of_weir, (2, 2)), weir.ones(2, device=device))
    with pytest.raises(weir.OperationError, match=why):
        x.numpy(copy=True)


def test_e9_elements_of_numpy_at_other_places_are_found_out() -> None:
    def diagonal(columns: list[int]) -> Parts:
        return np.array([1.0, 2, 4]), np.array(columns), np.arange(4), (3, 3)

    with DirectSolver(diagonal([0, 1, 2]), np.full(3, 8.0)) as solver:
        solver.plan()
        solver.factorize()
        assert solver.solve().tolist() == [8, 4, 2]
        solver.reset_operands(diagonal([1, 0, 2]))
        with pytest.raises(weir.ArgumentError, match="at other places than those that were analyzed: call plan"):
            solver.factorize()
        solver.plan()
        solver.factorize()
        assert solver.solve().tolist() == [4, 8, 2]
        solver.reset_operands(diagonal([1, 0, 2]))
        solver.factorize()
        assert solver.solve().tolist() == [4, 8, 2]


def test_p1_memory_limits() -> None:
    a = on_device(matrix())
    b = weir.array(right_hand_side())
    with pytest.raises(weir.OperationError, match="the memory limit is 100 bytes"):
        weir.sparse.solve(a, b, memory_limit=100, blocking=True)
    with pytest.raises(weir.OutOfMemory, match="for copies of the operands"):
        weir.sparse.solve(a, b, memory_limit="100 B", execution="sim")
    assert close(weir.sparse.solve(a, b, memory_limit="1 MiB").numpy(), matrix(), right_hand_side())


def test_parts_with_their_shape_beside_them(device: weir.Device) -> None:
    a, b = matrix(), np.ones(N)
    of_weir = on_device(a, device)[:3]
    on = weir.array(b, device=device)
    assert close(weir.sparse.solve(of_weir, on, shape=(N, N)).numpy(copy=True), a, b)
    assert close(weir.sparse.solve(of_weir, on).numpy(copy=True), a, b), "square where nothing else is said"
    other = 2 * a
    with DirectSolver(parts(a), b, shape=(N, N)) as solver:
        solver.reset_operands(parts(other), shape=(N, N))
        solver.plan()
        solver.factorize()
        assert close(solver.solve(), other, b)
        with pytest.raises(weir.ArgumentError, match="a shape and no matrix"):
            solver.reset_operands(b=b, shape=(N, N))
    with pytest.raises(weir.ArgumentError, match="beside a matrix that has one"):
        weir.sparse.solve((*parts(a), a.shape), b, shape=(N, N))
    with pytest.raises(weir.ArgumentError, match="indptr has no elements"):
        weir.sparse.solve((np.ones(0), np.zeros(0, "int32"), np.zeros(0, "int32")), b)


def test_what_is_no_matrix_is_refused() -> None:
    b = np.ones(2)
    with pytest.raises(weir.ArgumentTypeError, match="in compressed sparse rows of SciPy, CuPy or PyTorch"):
        weir.sparse.solve(np.eye(2), b)
    with pytest.raises(weir.ArgumentError, match="the matrix has shape"):
        weir.sparse.solve((np.ones(1), np.zeros(1, "int32"), np.array([0, 1, 1], "int32"), (2, 3)), b)
    with pytest.raises(weir.ArgumentTypeError, match="the row offsets are int16"):
        weir.sparse.solve((np.ones(2), np.arange(2, dtype="int16"), np.arange(3, dtype="int16"), (2, 2)), b)
    with pytest.raises(weir.ArgumentTypeError, match="convert them to float32"):
        weir.sparse.solve((np.ones(2, "int64"), np.arange(2, dtype="int32"), np.arange(3, dtype="int32"), (2, 2)), b)
    eye = (np.ones(2), np.arange(2, dtype="int32"), np.arange(3, dtype="int32"), (2, 2))
    with pytest.raises(weir.ArgumentError, match=r'kind is .SPD.: pass "general"'):
        weir.sparse.solve(eye, b, kind="SPD")
    with pytest.raises(weir.ArgumentError, match="a triangle says nothing of a general matrix"):
        weir.sparse.solve(eye, b, triangle="lower")
    with pytest.raises(weir.ArgumentTypeError, match="the right-hand side of float32"):
        weir.sparse.solve(eye, b.astype("float32"))
    with pytest.raises(weir.ArgumentTypeError, match=r"reset_operands\(\) got arrays of NumPy"):
        DirectSolver(on_device(np.eye(2)), weir.ones(2)).reset_operands(b=b)


@needs_scipy
def test_other_formats_of_scipy_are_refused() -> None:
    for name in ("csc", "coo", "lil", "dia"):
        with pytest.raises(weir.ArgumentError, match=rf'format "{name}": pass a.tocsr\(\)'):
            weir.sparse.solve(sparse.eye(3, format=name), np.ones(3))
    unsorted = sparse.csr_matrix((np.ones(2), np.array([1, 0]), np.array([0, 2, 2])), shape=(2, 2))
    with pytest.raises(weir.ArgumentError, match=r"SciPy: a.sum_duplicates\(\)"):
        weir.sparse.solve(unsorted, np.ones(2))


def test_matrices_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = matrix(), right_hand_side(columns=2)
    x = weir.sparse.solve(torch.tensor(a).to_sparse_csr(), torch.tensor(b))
    assert isinstance(x, torch.Tensor)
    assert close(x.numpy(), a, b)
    with pytest.raises(weir.ArgumentError, match=r"layout torch.sparse_coo: pass x.to_sparse_csr\(\)"):
        weir.sparse.solve(torch.tensor(a).to_sparse_coo(), torch.tensor(b))


def test_empty() -> None:
    nothing = (np.ones(0), np.zeros(0, "int32"), np.zeros(1, "int32"), (0, 0))
    assert weir.sparse.solve(nothing, np.ones(0)).shape == (0,)
    with DirectSolver(nothing, np.ones((0, 3))) as solver:
        solver.plan()
        solver.factorize()
        assert solver.solve().shape == (0, 3)


def test_streams_of_other_devices_are_refused() -> None:
    given, right = on_device(matrix()), weir.array(right_hand_side())
    with pytest.raises(weir.ArgumentError, match="pass a stream of cpu"):
        weir.sparse.solve(given, right, stream=weir.Stream("sim:0"))
    with pytest.raises(weir.ArgumentTypeError):
        weir.sparse.solve(given, right, stream="cpu")
    with pytest.raises(weir.ArgumentTypeError, match="no stream"):
        DirectSolver(given, right, stream="nonsense")  # at once, not in the first phase


@pytest.mark.parametrize("which", ["no stream", "another device", "closed"])
def test_a_phase_that_refuses_its_stream_leaves_the_solver_as_it_was(which: str) -> None:
    """Of arrays of NumPy, whose elements a phase takes again."""
    a, b = sparse.csr_matrix(matrix()), right_hand_side()
    closed = weir.Stream()
    closed.close()
    wrong: dict[str, str | weir.Stream] = {
        "no stream": "nonsense",
        "another device": weir.Stream("sim:0"),
        "closed": closed,
    }
    with DirectSolver(a, b) as solver:
        solver.plan()
        solver.factorize()
        factorized = a.toarray()
        a.data *= 2
        for phase in (solver.plan, solver.factorize, solver.solve):
            with pytest.raises(weir.Error, match=r"no stream|pass a stream of cpu|is closed"):
                phase(stream=wrong[which])
            assert close(solver.solve(), factorized, b)
        solver.factorize()
        assert close(solver.solve(), a.toarray(), b)


def test_s9_solvers_print_what_they_are() -> None:
    solver = DirectSolver(on_device(matrix(n=6)), weir.array(right_hand_side(n=6)))
    assert repr(solver) == "<weir.sparse.DirectSolver of float64 (6, 6) and float64 (6,) on cpu>"
    solver.plan()
    solver.release_operands()
    assert repr(solver).endswith(" on cpu, released>")
    solver.free()
    assert repr(solver) == "<weir.sparse.DirectSolver freed>"


def test_every_order_of_phases_gives_the_solution_or_says_what_is_missing() -> None:
    a, b = matrix(n=6), right_hand_side(n=6)
    for order in itertools.product(["plan", "factorize", "solve"], repeat=4):
        solver = DirectSolver(on_device(a), weir.array(b))
        done: list[str] = []
        for phase in order:
            needed = {"plan": [], "factorize": ["plan"], "solve": ["plan", "factorize"]}[phase]
            if all(each in done for each in needed):
                x = getattr(solver, phase)()
                done = ["plan"] if phase == "plan" else [*done, phase]
                assert phase != "solve" or close(x.numpy(), a, b)
            else:
                with pytest.raises(weir.StateError, match=f"before {phase}"):
                    getattr(solver, phase)()


def test_the_variable_that_names_pardiso_is_in_the_message_if_it_is_not_there() -> None:
    program = "import weir; a = weir.ones(1); i = weir.zeros(1, 'int32'); o = weir.arange(2, dtype='int32')\n"
    program += "weir.sparse.solve((a, i, o, (1, 1)), a)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WEIR_PARDISO_LIBRARY": "/no/such/library.so"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "MissingLibrary: cannot open /no/such/library.so, which WEIR_PARDISO_LIBRARY names" in done.stderr
