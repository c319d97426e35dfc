"""Loads code before its first use: a driver that loads a kernel may wait for all work of the device."""

import weir

device = weir.devices("cuda")[0] if weir.devices("cuda") else weir.Device("cpu")
axpy = weir.elementwise("float x, float a", "float y", "y = a * x + 1", name="axpy")
x = weir.full((4, 6), 3, "float32", device=device)

device.prepare("float32")  # operators, reductions, copies and conversions of arrays of float32
axpy.prepare(x, 2)  # the kernel for these operands: an array, and any number

# From here on nothing compiles or loads: a stream that waits for the host cannot hold this up.
y = axpy(x, 2)
print((y * x).sum(axis=0).tolist())
