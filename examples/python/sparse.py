"""A sparse system that is factorized once and solved on two streams, without a word about ordering."""

import numpy as np
import weir

n = 999
rows = np.repeat(np.arange(n), 3)[1:-1]  # of the second difference on n points of a line
columns = (np.repeat(np.arange(n), 3) + np.tile([-1, 0, 1], n))[1:-1]
values = np.where(rows == columns, 2.0, -1.0)
offsets = np.concatenate([[0], np.cumsum(np.bincount(rows))])
matrix = (
    weir.array(values),
    weir.array(columns.astype("int32")),
    weir.array(offsets.astype("int32")),
    (n, n),
)

first, second = weir.Stream(name="first"), weir.Stream(name="second")
with weir.sparse.DirectSolver(matrix, weir.ones(n), kind="positive_definite") as solver:
    solver.plan(stream=first)
    solver.factorize(stream=first)
    x = solver.solve(stream=second)
    solver.reset_operands(b=x)  # the solution is the next right-hand side, pending or not
    y = solver.solve(stream=first)

print(f"in the middle {x[n // 2].item():.1f}, then {y[n // 2].item():.3e}")
assert abs(x[n // 2].item() - (n + 1) ** 2 / 8) < 1e-4
