"""Sparse systems through weir.sparse, beside SciPy's SuperLU, and on cuda:0 beside CuPy: microseconds a call.

The matrix is the five-point Laplacian on a square of points, in float64. A call is over when its result is there. Weir
gets the peer's own matrix and arrays, and in a second row arrays of Weir, whose stream is synchronized after each call.
All take turns, and the ratio is the median over the rounds: less than 1 means that Weir is faster. Before a call is
timed, its solution x is checked: a residual |Ax - b| / |b| above 1e-8 ends the program with an error. For 64 unknowns a
call's own cost counts: there "inline" are arrays of Weir on cpu:inline, where no other thread takes part.

splu() analyzes and factorizes: it stands beside plan() with factorize(), and beside factorize() alone, since SciPy
cannot keep an analysis. SuperLU has no Cholesky factorization: beside kind="positive_definite" it does LU, in its
symmetric mode. CuPy's spsolve() is cuSOLVER's QR. Its splu() is SuperLU on the host, with solutions on the device.

Usage: python_sparse.py
"""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

# One thread for SuperLU, as Eigen has. With two, on a busy machine with two cores, it took up to 12 times as long for
# 16 right-hand sides. OpenBLAS reads the variable when NumPy and SciPy are imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import python_peers
import weir

Call = Callable[[], Any]
Calls = dict[str, Call]
PeerCalls = dict[str, tuple[str, Call]]  # with the name of the function

ONCE, ANALYZED, FACTORIZED, SOLVED, SOLVED_MANY = (
    "stateless solve",
    "plan and factorize",
    "factorize again",
    "solve",
    "solve, 16 right-hand sides",
)
ALL = (ONCE, ANALYZED, FACTORIZED, SOLVED, SOLVED_MANY)
KINDS = {"general": "general", "positive_definite": "positive definite"}
ALLOWED = 1e-8  # of the residual
TURN = 0.01  # seconds for the slowest contestant's calls of one round, unless one call takes longer
ROW = 0.8  # seconds for all rounds of a row, unless the fewest take longer
LEAST, MOST = 7, 31  # rounds


def nothing() -> None:
    pass


def loaded(name: str) -> Any:
    """The module; None, and a line that says so, if it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as reason:  # an import fails in many ways where a library or a driver is missing
        print(f"left out: {name} ({type(reason).__name__}: {reason})")
        return None


class Problem:
    """The five-point Laplacian on side x side points, in compressed sparse rows, and right-hand sides: one, and 16."""

    def __init__(self, side: int) -> None:
        self.n = side * side
        i = np.arange(self.n)
        x, y = i % side, i // side
        beside = np.stack([i - side, i - 1, i, i + 1, i + side], axis=1)
        inside = np.stack([y > 0, x > 0, i >= 0, x < side - 1, y < side - 1], axis=1)
        self.values = np.broadcast_to([-1.0, -1.0, 4.0, -1.0, -1.0], inside.shape)[inside]
        self.columns = beside[inside].astype("int32")
        self.offsets = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype("int32")
        random = np.random.default_rng(1)
        self.b, self.many = random.standard_normal(self.n), random.standard_normal((self.n, 16))

    def residual(self, x: np.ndarray) -> float:
        b = (self.b if x.ndim == 1 else self.many).reshape(self.n, -1)
        products = self.values[:, None] * x.reshape(self.n, -1)[self.columns]
        difference = np.add.reduceat(products, self.offsets[:-1], axis=0) - b
        return float((np.linalg.norm(difference, axis=0) / np.linalg.norm(b, axis=0)).max())


def settled(call: Call, settle: Call) -> Call:
    """Both, and the result of the first; `settle` waits for what it enqueued."""

    def both() -> Any:
        result = call()
        settle()
        return result

    return both


@cache
def say(line: str) -> None:
    """Prints a line, and each only once."""
    print(f"  {line}")


def through_weir(matrix: Any, b: Any, many: Any, kind: str, stream: weir.Stream | None, settle: Call) -> Calls:
    """Also says which library does which phase."""
    one, several = (weir.sparse.DirectSolver(matrix, of, kind=kind, stream=stream) for of in (b, many))
    for solver in (one, several):
        solver.plan()
        solver.factorize()
    for line in weir.explain(one).phases:
        say(line)

    def analyzed() -> None:
        one.plan()
        one.factorize()

    calls: Calls = {
        ONCE: lambda: weir.sparse.solve(matrix, b, kind=kind, stream=stream),
        ANALYZED: analyzed,
        FACTORIZED: one.factorize,
        SOLVED: one.solve,
        SOLVED_MANY: several.solve,
    }
    return {what: settled(call, settle) for what, call in calls.items()}


def with_arrays_of_weir(of: Problem, kind: str, device: str) -> Calls:
    s = weir.Stream(device)
    values, columns, offsets, b, many = (
        weir.array(x, device=device) for x in (of.values, of.columns, of.offsets, of.b, of.many)
    )
    return through_weir((values, columns, offsets, (of.n, of.n)), b, many, kind, s, s.synchronize)


def superlu_options(kind: str) -> dict[str, Any]:
    """The symmetric mode, with the order and the threshold that SuperLU's guide has for it."""
    if kind == "general":
        return {}
    return {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}


def through_superlu(linalg: Any, matrix: Any, b: Any, many: Any, kind: str, settle: Call) -> PeerCalls:
    """What stands beside all but the stateless solve. `linalg`: SciPy's, or CuPy's, which needs SciPy's."""
    how = superlu_options(kind)
    try:
        lu = linalg.splu(matrix, **how)
    except RuntimeError as reason:
        print(f"left out: {linalg.__name__}.splu ({reason})")
        return {}

    def factorized() -> None:
        linalg.splu(matrix, **how)

    return {
        ANALYZED: ("splu", settled(factorized, settle)),
        FACTORIZED: ("splu", settled(factorized, settle)),
        SOLVED: ("lu.solve", settled(lambda: lu.solve(b), settle)),
        SOLVED_MANY: ("lu.solve", settled(lambda: lu.solve(many), settle)),
    }


def check(package: str, what: str, of: Problem, x: Any) -> None:
    if isinstance(x, weir.Array):
        x = x.numpy(copy=True)
    elif not isinstance(x, np.ndarray):
        x = x.get()
    residual = of.residual(x)
    if not residual <= ALLOWED:
        raise SystemExit(f"{package}, {what}, {of.n} unknowns: the residual is {residual:.1e}, above {ALLOWED}")


def seconds(call: Call, calls: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def compare(what: str, of: Problem, peer: PeerCalls, ours: dict[str, Calls]) -> None:
    """Prints a row for each of Weir's ways; their names say which operands they have."""
    if what not in peer:
        return
    function, theirs = peer[what]
    ways = {function: (theirs, peer[SOLVED][1] if SOLVED in peer else theirs)}
    ways |= {operands: (calls[what], calls[SOLVED]) for operands, calls in ours.items()}
    for name, (call, solve) in ways.items():
        x = call()
        check(name, what, of, solve() if x is None else x)
    costs = [min(seconds(call) for _ in range(2)) for call, _ in ways.values()]
    calls = max(1, int(TURN / max(costs)))
    rounds = min(MOST, max(LEAST, int(ROW / (calls * sum(costs)))))
    times = python_peers.in_turns(
        lambda call: seconds(call, calls) / calls, {name: (call, nothing) for name, (call, _) in ways.items()}, rounds
    )
    for operands in ours:
        pairs = list(zip(times[operands], times[function], strict=True))
        mine, beside = (statistics.median(side) * 1e6 for side in zip(*pairs, strict=True))
        low, middle, high = statistics.quantiles((a / b for a, b in pairs), n=4)
        row = f"{what:38}{operands:10}{mine:12.1f}{beside:12.1f}  {function:10}"
        print(f"{row}{middle:6.2f} [{low:.2f} .. {high:.2f}]", flush=True)


def title(device: str, of: Problem, kind: str) -> None:
    print(f"\n{f'{device}, n = {of.n}, {KINDS[kind]}':38}{'operands':10}{'Weir, us':>12}{'peer, us':>12}")


def on_the_cpu() -> None:
    sparse, linalg = loaded("scipy.sparse"), loaded("scipy.sparse.linalg")
    if sparse is None or linalg is None:
        return
    threads = os.environ["OPENBLAS_NUM_THREADS"]
    print(f"SciPy {importlib.import_module('scipy').__version__}, OPENBLAS_NUM_THREADS={threads}")
    for side in (8, 32, 100, 200):
        of = Problem(side)
        matrix = sparse.csr_matrix((of.values, of.columns, of.offsets), shape=(of.n, of.n))
        for kind in KINDS:
            title("cpu", of, kind)
            ours = {
                "SciPy": through_weir(matrix, of.b, of.many, kind, None, nothing),
                "Weir": with_arrays_of_weir(of, kind, "cpu"),
            }
            if side == 8:  # without the thread that runs a stream, and that the caller waits for
                ours["inline"] = with_arrays_of_weir(of, kind, "cpu:inline")
            peer = through_superlu(linalg, matrix.tocsc(), of.b, of.many, kind, nothing)  # which it would convert to
            order = superlu_options(kind).get("permc_spec")
            peer[ONCE] = ("spsolve", partial(linalg.spsolve, matrix, of.b, permc_spec=order, use_umfpack=False))
            for what in ALL if side > 8 else (SOLVED,):  # of the smallest, what a call costs
                compare(what, of, peer, ours)


def on_cuda() -> None:
    if not weir.devices("cuda"):
        print("\nleft out: CUDA (there is no device)")
        return
    cupy, sparse, linalg = loaded("cupy"), loaded("cupyx.scipy.sparse"), loaded("cupyx.scipy.sparse.linalg")
    if cupy is None or sparse is None or linalg is None:
        return
    try:
        device = weir.Device("cuda:0")
        device.synchronize()
        cupy.cuda.Device(0).synchronize()
    except Exception as reason:
        print(f"\nleft out: CUDA ({type(reason).__name__}: {reason})")
        return

    def settle() -> None:
        device.synchronize()  # with Weir's host tasks
        cupy.cuda.Device(0).synchronize()

    for side in (32, 100):  # no more: each spsolve() is a whole QR
        of = Problem(side)
        matrix = sparse.csr_matrix(
            tuple(cupy.asarray(x) for x in (of.values, of.columns, of.offsets)), shape=(of.n, of.n)
        )
        b, many = cupy.asarray(of.b), cupy.asarray(of.many)
        for kind in KINDS:
            title("cuda:0", of, kind)
            try:
                ours = {
                    "CuPy": through_weir(matrix, b, many, kind, None, settle),
                    "Weir": with_arrays_of_weir(of, kind, "cuda:0"),
                }
            except weir.MissingLibrary as reason:
                print(f"left out: weir.sparse on cuda:0 ({reason})")
                return
            peer = through_superlu(linalg, matrix, b, many, kind, cupy.cuda.Device(0).synchronize)
            peer[ONCE] = ("spsolve", settled(partial(linalg.spsolve, matrix, b), cupy.cuda.Device(0).synchronize))
            for what in ALL:
                compare(what, of, peer, ours)


def main() -> None:
    versions = [f"Python {platform.python_version()}", f"weir {weir.__version__}", f"NumPy {np.__version__}"]
    print(f"{', '.join(versions)}; {os.cpu_count()} cores")
    on_the_cpu()
    on_cuda()


if __name__ == "__main__":
    main()
