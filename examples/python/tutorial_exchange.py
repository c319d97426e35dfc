"""One kernel on arrays of torch and NumPy, its result in JAX; a race with the next line, and how it goes away."""

import threading

import jax
import numpy as np
import torch
import weir
from weir.testing import Gate

samples = torch.linspace(0.0, 1.0, 8)  # float32, of torch
offsets = np.full(8, 10.0, dtype="float32")  # of NumPy

scaled = weir.elementwise("float32 x, float32 y, float32 a", "float32 z", "z = a * x + y")

z = scaled(samples, offsets, 2.0)
print(z.tolist())

of_jax = jax.dlpack.from_dlpack(z)  # waits until the kernel is done: JAX may look at any time
print(type(of_jax).__name__, float(of_jax.sum()))

spectrum = weir.fft.rfft(samples)
assert isinstance(spectrum, torch.Tensor)

stream = weir.Stream(name="busy")


def multiplied(mode):
    """Ten times ones, by a kernel that has to wait for its turn. torch changes the ones in the line after the call."""
    ones = torch.ones(4)
    gate = Gate()
    gate.hold(stream)  # the stream has something else to do
    threading.Timer(0.2, gate.open).start()
    with weir.ordering(mode):
        result = scaled(ones, weir.zeros(4, "float32"), 10.0, stream=stream)
        ones += 2
    return result.tolist()


print("in the order of luck:", multiplied("manual"))
print("in the order of the program:", multiplied("auto"))

view = weir.asarray(torch.ones(4))
for array in (view, z):
    said = weir.explain(array)
    print(said.protocol, "went out" if said.went_out else "came in")

a, b = torch.ones(4), torch.zeros(4)
with weir.borrow(a, b, write=[b], stream=stream) as (x, y):
    weir.copy(y, x)
print(b.tolist())  # over: torch on the CPU may look at any time
