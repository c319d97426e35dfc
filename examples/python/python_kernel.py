"""Kernels whose bodies are Python, for the CPU, simulated and CUDA devices. Needs Numba: pip install numba."""

import math

import numba
import numpy as np
import weir
from numba import cuda


@weir.kernel
def axpy(i, a, x, y):
    y[i] = a * x[i] + y[i]


x = weir.arange(8, dtype="float32")
y = weir.ones(8, "float32")
event = axpy[weir.Range(8)](2, x, y)  # on the current stream; returns at once
print(y.tolist())  # waits for what writes y

# A stream, and what the launch comes after; no wait for x or y is needed.
load, compute = weir.Stream(name="load"), weir.Stream(name="compute")
weir.fill(x, 3, stream=load)
ready = load.record()
axpy[weir.Range(8), compute](2, x, y)
axpy[weir.Range(8), compute, [ready]](2, x, y)
axpy[weir.Range(8), [ready]](2, x, y)


# Two dimensions: the index is a tuple, which indexes arrays as it is.
@weir.kernel
def blur(index, image, out):
    row, column = index
    last_row, last_column = image.shape[0] - 1, image.shape[1] - 1
    total = 0.0
    for r in range(max(row - 1, 0), min(row + 1, last_row) + 1):
        for c in range(max(column - 1, 0), min(column + 1, last_column) + 1):
            total += image[r, c]
    out[index] = total / 9


image = weir.array(np.arange(20.0).reshape(4, 5))
smooth = weir.empty((4, 5))
blur[weir.Range(4, 5)](image, smooth)
print(smooth[1:3, 1:4].tolist())


# Items in groups, with the names of numba-dpex.
@weir.kernel
def where_am_i(item, out):
    out[item.global_id] = 100 * item.get_group_id(0) + item.get_local_id(0)


places = weir.zeros(8, "int32")
where_am_i[weir.NdRange(8, 4)](places)
print(places.tolist())


# Items of a group wait for each other at cuda.syncthreads(), and share arrays, on all devices.
@weir.kernel
def sum_of_group(item, values, out):
    part = cuda.shared.array(64, numba.float64)
    i = item.local_id
    part[i] = values[item.global_id]
    cuda.syncthreads()
    half = item.local_range // 2
    while half > 0:
        if i < half:
            part[i] += part[i + half]
        cuda.syncthreads()
        half //= 2
    if i == 0:
        out[item.group_id] = part[0]


sums = weir.empty(4)
sum_of_group[weir.NdRange(256, 64)](weir.arange(256.0), sums)
print(sums.tolist())


# An item has arrays of its own, too: the median of each three neighbours.
@weir.kernel
def median(i, values, out):
    three = cuda.local.array(3, numba.float64)
    for k in range(3):
        three[k] = values[i + k]
    three.sort()
    out[i] = three[1]


smooth = weir.empty(6)
median[weir.Range(6)](weir.array([0.0, 1, 9, 2, 3, 4, 0, 5]), smooth)
print(smooth.tolist())


# What a body calls is compiled too. Weir looks into it: `half` reads its array and writes nothing.
@numba.njit
def half(values, i):
    return 0.5 * values[i]


@weir.kernel
def norm(i, values, out):
    out[i] = math.sqrt(half(values, i))


roots = weir.empty(8)
norm[weir.Range(8)](weir.arange(8.0), roots)
print(roots.numpy().round(2).tolist())


# Where Weir cannot see what a body does with an array, it counts as read and written; In, Out and InOut say better.
@weir.kernel
def mean(i, values, out):
    out[i] = values.mean()


means = weir.empty(1)
mean[weir.Range(1)](weir.In(roots), means)
print(means.numpy().round(3))


# An exception fails the operation: a call that waits for it raises, with the line of the launch.
@weir.kernel(boundscheck=True)
def shift(i, values, out):
    out[i] = values[i + 1]


failed = shift[weir.Range(8)](x, y)
try:
    failed.wait()
except weir.OperationError as error:
    print(error.label, error.line, type(error.__cause__).__name__)


# Functions of Numba take arrays of Weir: the call waits for what conflicts, as NumPy's do.
@numba.njit
def total_of(values):
    total = 0.0
    for one in values:
        total += one
    return total


print(total_of(places.astype("float64")))
