"""Element-wise kernels: one text for the CPU and for CUDA devices."""

import numpy as np
import weir

axpy = weir.elementwise("float x, float a", "float y", "y = a * x + 1", name="axpy")

x = weir.arange(5, dtype="float32")
y = axpy(x, 2)  # a new array
axpy(y, 0.5, out=y)  # or into one that there is
print(y.tolist())

# T is any type. What is "inout" is read as well; an output that is None in out= is a new array.
add = weir.elementwise("T x, T y", "T sum, inout T total", "sum = x + y; total += x + y")
total = weir.zeros((3, 4))
sums, total = add(weir.array(np.arange(12.0).reshape(3, 4)), weir.arange(4.0), out=(None, total))
print(sums.tolist()[2], total.tolist()[2])

# Several lines; i is the number of the element, n how many there are.
collatz = weir.elementwise(
    "",
    "int32 steps",
    """
    steps = 0;
    int count = 0;
    for (int64 k = i + 1; k != 1; ++count) {
        k = k % 2 == 0 ? k / 2 : 3 * k + 1;
    }
    steps = count;
    """,
)
print(collatz(out=weir.empty(8, "int32")).tolist())

# A table that the body indexes: raw inputs are whole arrays.
lookup = weir.elementwise("raw T table, int32 at", "T y", "y = table[at]")
print(lookup(weir.array(np.array([10.0, 20.0, 30.0])), weir.array(np.array([2, 0, 0, 1], "int32"))).tolist())

# An output is only written.
try:
    weir.elementwise("float x", "float y", "y = x;\ny += 1")(x)
except weir.ArgumentError as mistake:
    print(mistake)
