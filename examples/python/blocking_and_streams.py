"""Library calls on two streams: without an event, and then with each event written by hand.

Usage: blocking_and_streams.py [DEVICE], such as cpu (the default), sim:0 or cuda:0
"""

import sys

import numpy as np
import weir

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"  # or "sim:0"; "cuda:0" where there is a GPU
s1, s2 = weir.Stream(device, name="s1"), weir.Stream(device, name="s2")
values = np.random.default_rng(seed=1).random((48, 64))


def expect(what: str, *results: bool) -> None:
    print(f"{what}: {all(results)}")
    assert all(results), what


def is_close(x: weir.Array, expected: np.ndarray) -> bool:
    return bool(np.allclose(x.numpy(copy=True), expected))


# Stateless calls.
x = weir.array(values, device=device, stream=s1)
spectrum = weir.fft.fft(x, stream=s1)
back = weir.fft.ifft(spectrum, stream=s2)  # s2 waits for `spectrum`; the host waits for nothing

a = weir.array(values, device=device, stream=s1)
with s2:
    a *= 2  # s2 waits until s1 has made `a`
doubled = weir.fft.fft(a, stream=s2)
del a  # the memory is not used again before s2 has read it

expect("fft there and back", is_close(back, values))
expect("fft of an array that is dropped", is_close(doubled, np.fft.fft(2 * values)))

with weir.check() as report, weir.ordering("manual"):
    x = weir.array(values, device=device, stream=s1)
    spectrum = weir.fft.fft(x, stream=s1)
    s2.wait(s1.record())  # `spectrum` before its inverse
    back = weir.fft.ifft(spectrum, stream=s2)

    a = weir.array(values, device=device, stream=s1)
    s2.wait(s1.record())  # `a` before its change
    with s2:
        a *= 2
    doubled = weir.fft.fft(a, stream=s2)
    s1.wait(s2.record())  # for allocators that free on s1, where `a` was made; not needed for Weir's memory
    del a
    s2.synchronize()  # before the host reads
print("races in the stateless calls:", len(report))

expect("fft by hand", is_close(back, values), is_close(doubled, np.fft.fft(2 * values)), not report.races)

# Stateful calls: FFT.
with weir.fft.FFT(weir.array(values, device=device, stream=s1), stream=s1) as f:
    f.plan()  # on s1, as all calls of `f` that name no stream
    first = f.execute()
    c = weir.array(3 * values, device=device, stream=s2)
    f.reset_operand(c)  # `f` alone held the first operand, and drops it while s1 may still read it
    second = f.execute(stream=s2)

expect("FFT on s1", is_close(first, np.fft.rfftn(values)))
expect("FFT of another operand on s2", is_close(second, np.fft.rfftn(3 * values)))

# Stateful calls: Matmul. The current stream changes between the calls.
left, right = (weir.array(m, device=device, stream=s1) for m in (values, values.T))
with weir.linalg.Matmul(left, right) as product:
    with s1:
        product.plan()
        p = product.execute()
    with s2:
        product.reset_operands(weir.array(3 * values, device=device))
        q = product.execute()  # on s2 now: it waits until s1 has made `right`

expect("Matmul on s1", is_close(p, values @ values.T))
expect("Matmul of another operand on s2", is_close(q, 3 * values @ values.T))

with weir.check() as report, weir.ordering("manual"):
    with weir.fft.FFT(weir.array(values, device=device, stream=s1), stream=s1) as f:
        f.plan()
        first = f.execute()
        c = weir.array(3 * values, device=device, stream=s2)
        s2.wait(s1.record())  # for libraries whose plan has one workspace; Weir orders its own in each mode
        f.reset_operand(c)
        second = f.execute(stream=s2)

    left, right = (weir.array(m, device=device, stream=s1) for m in (values, values.T))
    with weir.linalg.Matmul(left, right, stream=s1) as product:
        product.plan()
        p = product.execute()
        product.reset_operands(weir.array(3 * values, device=device, stream=s2))
        s2.wait(s1.record())  # `right` before its use
        q = product.execute(stream=s2)
    s1.wait(s2.record())  # before `right` is dropped, which s1 has made and s2 reads
    del right
    s2.synchronize()
print("races in the plans:", len(report))

expect("FFT by hand", is_close(first, np.fft.rfftn(values)), is_close(second, np.fft.rfftn(3 * values)))
expect("Matmul by hand", is_close(p, values @ values.T), is_close(q, 3 * values @ values.T), not report.races)

# Stateful calls: DirectSolver.
dense = 2 * np.eye(48) - np.eye(48, k=1) - np.eye(48, k=-1)  # the second difference on a line
rows, columns = np.nonzero(dense)
offsets = np.concatenate([[0], np.cumsum(np.bincount(rows))])
matrix = tuple(weir.array(part, device=device, stream=s1) for part in (dense[rows, columns], columns, offsets))
b = weir.array(values[:, 0], device=device, stream=s1)

with weir.sparse.DirectSolver(matrix, b, kind="positive_definite") as solver:
    solver.plan(stream=s1)
    solver.factorize(stream=s1)
    u = solver.solve(stream=s1)
    solver.reset_operands(b=weir.array(values[:, 1], device=device, stream=s2))
    v = solver.solve(stream=s2)  # s2 waits for the factorization

expect("DirectSolver on s1", is_close(u, np.linalg.solve(dense, values[:, 0])))
expect("DirectSolver with another right-hand side on s2", is_close(v, np.linalg.solve(dense, values[:, 1])))

with weir.check() as report, weir.ordering("manual"):
    with weir.sparse.DirectSolver(matrix, b, kind="positive_definite", stream=s1) as solver:
        solver.plan()
        solver.factorize()
        u = solver.solve()
        solver.reset_operands(b=weir.array(values[:, 1], device=device, stream=s2))
        s2.wait(s1.record())  # for libraries that do not order the factorization; Weir does in each mode
        v = solver.solve(stream=s2)
    s1.synchronize()
    s2.synchronize()
print("races in the solver:", len(report))

expect(
    "DirectSolver by hand",
    is_close(u, np.linalg.solve(dense, values[:, 0])),
    is_close(v, np.linalg.solve(dense, values[:, 1])),
    not report.races,
)
