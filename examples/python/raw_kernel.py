"""A kernel in CUDA C++ that CuPy's RawKernel took before: launched on two streams, which Weir orders."""

from __future__ import annotations

import weir

SCALE = r"""
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""

if weir.devices("cuda"):
    n = 1000
    blocks = (n + 255) // 256
    scale = weir.Kernel(SCALE, "scale", "in float* x, out float* y, float a, int n")
    s1, s2 = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    x = weir.ones(n, "float32", device="cuda:0")
    y, z = weir.empty(n, "float32", device="cuda:0"), weir.empty(n, "float32", device="cuda:0")
    scale[blocks, 256, s1](x, y, 2, n)
    scale[blocks, 256, s2](y, z, 2, n)  # starts after the first: both name y
    print(z.numpy()[:3])  # waits for what writes z
else:
    print("there is no CUDA device here")
