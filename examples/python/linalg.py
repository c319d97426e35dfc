"""Products of matrices on two streams, without a word about ordering."""

import numpy as np
import weir

first, second = weir.Stream(name="first"), weir.Stream(name="second")
x = weir.random.random((32, 64), seed=1, stream=first)
w1 = weir.random.random((64, 16), seed=2, stream=second)
w2 = weir.random.random((16, 4), seed=3, stream=second)
bias = weir.full((16,), -15.0, stream=second)

hidden = weir.linalg.matmul(x, w1, epilog="relu_bias", bias=bias, stream=first)
y = hidden @ w2  # on the current stream, ordered after `hidden`

with weir.linalg.Matmul(x, w1, epilog="relu_bias", bias=bias) as layer:
    layer.plan(stream=first)
    h = layer.execute(stream=first)
    layer.reset_operands(weir.random.random((32, 64), seed=4, stream=second))
    other = layer.execute(stream=second)

expected = np.maximum(x.numpy() @ w1.numpy() - 15, 0) @ w2.numpy()
print("as NumPy:", np.allclose(y.numpy(), expected), np.allclose((h @ w2).numpy(), expected), other.shape)
