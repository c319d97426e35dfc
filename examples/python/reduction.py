"""Reductions along axes: one text for the CPU and for CUDA devices."""

import numpy as np
import weir

norm = weir.reduction("T x", "T y", "x * x", "a + b", identity=0, post="y = sqrt(a)", name="norm")

x = weir.full((3, 4), 2.0)
print(norm(x, axis=1).tolist())  # a number for each row
print(norm(x, axis=(0, 1), keepdims=True).shape)

# Several inputs are broadcast; NumPy's arrays are taken as they are at the call.
dot = weir.reduction("T x, T w", "T y", "x * w", identity=0, name="dot")
print(dot(x, np.arange(4.0), axis=1).tolist())

# Several outputs. The values that are reduced are float64, whatever the elements are.
moments = weir.reduction(
    "float32 x, int64 count",
    "float32 mean, float32 root",
    "double(x) * x / count",
    post="mean = a; root = sqrt(a)",
    type="float64",
    identity=0,
)
mean, root = moments(weir.full(1000, 3, "float32"), 1000)
print(mean.item(), root.item())

# The place of the largest element in each row: the values that are reduced are pairs. Of equal elements the first wins.
argmax = weir.reduction(
    "T x",
    "int64 where",
    "{x, i}",
    "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b",
    post="where = a.index",
    type="T value, int64 index",
    name="argmax",
)
print(argmax(weir.array([[3, 1, 2], [1, 5, 5]]), axis=1).tolist())

# An extreme has no value of no elements.
largest = weir.reduction("T x", "T y", "fabs(x)", "max(a, b)")
print(largest(-x, axis=0).tolist())
try:
    largest(weir.zeros(0))
except weir.ArgumentError as mistake:
    print(mistake)
