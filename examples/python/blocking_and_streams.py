"""Library calls on two streams: without an event, and then with each event written by hand.

Usage: blocking_and_streams.py [DEVICE], such as cpu (the default), sim:0 or cuda:0
"""

import sys

import numpy as np
import weir

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"  # or "sim:0"; "cuda:0" where there is a GPU
s1, s2 = weir.Stream(device, name="s1"), weir.Stream(device, name="s2")
values = np.random.default_rng(seed=1).random((48, 64))

x = weir.array(values, device=device, stream=s1)
spectrum = weir.fft.fft(x, stream=s1)
back = weir.fft.ifft(spectrum, stream=s2)  # s2 waits for `spectrum`; the host waits for nothing
a = weir.array(values, device=device, stream=s1)
with s2:
    a *= 2  # s2 waits until s1 has made `a`
doubled = weir.fft.fft(a, stream=s2)
del a  # the memory is not used again before s2 has read it
print("fft there and back:", np.allclose(back.numpy(), values))

# The checks of this program. Each prints a line, and a wrong result ends the program.
double, triple = np.fft.fft(2 * values), np.fft.rfftn(3 * values)


def expect(what: str, *results: bool) -> None:
    print(f"{what}: {all(results)}")
    assert all(results), what


def is_close(of: weir.Array, expected: np.ndarray) -> bool:
    return bool(np.allclose(of.numpy(copy=True), expected))


expect("fft there and back, and an array that is dropped", is_close(back, values), is_close(doubled, double))

# By hand: stateless calls.
with weir.check() as report, weir.ordering("manual"):
    x = weir.array(values, device=device, stream=s1)
    spectrum = weir.fft.fft(x, stream=s1)
    s2.wait(s1.record())  # before the inverse
    back = weir.fft.ifft(spectrum, stream=s2)
    a = weir.array(values, device=device, stream=s1)
    s2.wait(s1.record())  # before the change
    with s2:
        a *= 2
    doubled = weir.fft.fft(a, stream=s2)
    s1.wait(s2.record())  # before the drop, for memory that goes back to s1; Weir's memory is safe without
    del a
    s2.synchronize()  # before the host reads
    print("by hand:", np.allclose(back.numpy(), values), len(report), "races")

expect("fft by hand", is_close(back, values), is_close(doubled, double), len(report) == 0)

# Without an event: plans, and a solver.
with weir.fft.FFT(weir.array(values, device=device, stream=s1), stream=s1) as f:
    f.plan()  # on s1, as each call of `f` that names no stream
    first = f.execute()
    f.reset_operand(weir.array(3 * values, device=device, stream=s2))  # drops an operand that s1 may still read
    second = f.execute(stream=s2)
left, right = (weir.array(m, device=device, stream=s1) for m in (values, values.T))
with weir.linalg.Matmul(left, right) as product:
    with s1:
        product.plan()
        p = product.execute()
    with s2:
        product.reset_operands(weir.array(3 * values, device=device))
        q = product.execute()  # on s2, the current stream now; s2 waits until s1 has made `right`

dense = 2 * np.eye(48) - np.eye(48, k=1) - np.eye(48, k=-1)
rows, columns = np.nonzero(dense)
offsets = np.concatenate([[0], np.cumsum(np.bincount(rows))])
matrix = tuple(weir.array(part, device=device, stream=s1) for part in (dense[rows, columns], columns, offsets))
with weir.sparse.DirectSolver(matrix, weir.array(values[:, 0], device=device, stream=s1)) as solver:
    solver.plan(stream=s1)
    solver.factorize(stream=s1)
    u = solver.solve(stream=s1)
    solver.reset_operands(b=weir.array(values[:, 1], device=device, stream=s2))
    v = solver.solve(stream=s2)  # s2 waits for the factorization

of_both = np.linalg.solve(dense, values[:, :2]).T
expect("FFT, and another operand on s2", is_close(first, np.fft.rfftn(values)), is_close(second, triple))
expect("Matmul, and another operand on s2", is_close(p, values @ values.T), is_close(q, 3 * values @ values.T))
expect("DirectSolver, and another right-hand side on s2", is_close(u, of_both[0]), is_close(v, of_both[1]))

# By hand: plans, and a solver.
with weir.check() as report, weir.ordering("manual"):
    with weir.fft.FFT(weir.array(values, device=device, stream=s1), stream=s1) as f:
        f.plan()
        first = f.execute()
        f.reset_operand(weir.array(3 * values, device=device, stream=s2))
        s2.wait(s1.record())  # for a workspace that both executions use; Weir orders its own
        second = f.execute(stream=s2)
    left, right = (weir.array(m, device=device, stream=s1) for m in (values, values.T))
    with weir.linalg.Matmul(left, right, stream=s1) as product:
        product.plan()
        p = product.execute()
        product.reset_operands(weir.array(3 * values, device=device, stream=s2))
        s2.wait(s1.record())  # before s2 reads `right`
        q = product.execute(stream=s2)
    with weir.sparse.DirectSolver(matrix, weir.array(values[:, 0], device=device, stream=s1), stream=s1) as solver:
        solver.plan()
        solver.factorize()
        u = solver.solve()
        solver.reset_operands(b=weir.array(values[:, 1], device=device, stream=s2))
        s2.wait(s1.record())  # for the factorization; Weir orders its own
        v = solver.solve(stream=s2)
    s2.synchronize()
    print("by hand:", np.allclose(dense @ v.numpy(), values[:, 1]), len(report), "races")

expect("FFT by hand", is_close(first, np.fft.rfftn(values)), is_close(second, triple))
expect("Matmul by hand", is_close(p, values @ values.T), is_close(q, 3 * values @ values.T))
expect("DirectSolver by hand", is_close(u, of_both[0]), is_close(v, of_both[1]), len(report) == 0)
