"""The tutorial of the exchange on a GPU: memory that CuPy reuses too early, and one kernel for three packages."""

import sys

try:
    import cupy
    import jax
    import torch
except ImportError as missing:
    print(f"skipped: it needs CuPy, JAX and torch ({missing})")
    sys.exit()

import weir

if not torch.cuda.is_available() or jax.default_backend() != "gpu":
    print("skipped: it needs a GPU, and JAX and torch with CUDA")
    sys.exit()

n = 1 << 20
other = torch.cuda.Stream()


def seen_by_torch(passed_on):
    """An element that a kernel of torch's reads after CuPy and torch have dropped the array."""
    x = cupy.full(n, 1.0, dtype="float32")  # of CuPy, on CuPy's current stream
    t = torch.from_dlpack(passed_on(x))  # of torch, the same memory
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        torch.cuda._sleep(100_000_000)  # the stream has something else to do
        out = t + 0  # a kernel that is still waiting
    del x, t  # CuPy and torch know of no use any more
    y = cupy.full(n, 99.0, dtype="float32")  # gets the memory, if nothing keeps it
    torch.cuda.synchronize()
    del y
    return float(out[0])


seen_by_torch(lambda x: x)  # loads the kernels: to load one can wait for what is in the stream
print("passed on directly:", seen_by_torch(lambda x: x))
print("through weir.share:", seen_by_torch(weir.share))
weir.safe_point()  # no CUDA graph is being captured: CuPy gets the shared memory back

scaled = weir.elementwise("float32 x, float32 y, float32 a", "float32 z", "z = a * x + y")

samples = torch.linspace(0, 1, 8, device="cuda")  # torch's current stream
offsets = cupy.full(8, 10, dtype="float32")  # CuPy's current stream
z = scaled(samples, offsets, 2.0)  # Weir's stream: waits on the device for both
of_jax = jax.dlpack.from_dlpack(z)  # JAX's stream waits for the kernel
samples += 1  # torch's stream waits until the kernel has read
print(of_jax.tolist())
