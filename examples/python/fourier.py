"""Transforms on two streams, without a word about ordering."""

import numpy as np
import weir

first, second = weir.Stream(name="first"), weir.Stream(name="second")
signal = weir.random.random(1000, seed=1, stream=first)
spectrum = weir.fft.rfft(signal, stream=first)
again = weir.fft.irfft(spectrum, n=1000, stream=second)  # ordered after `spectrum`

image = weir.random.random((8, 30, 50), seed=2)
padded = weir.fft.fftn(image, axes=(1, 2), n=(32, 64), norm="ortho")  # eight transforms, of (32, 64) each

with weir.fft.FFT(image, axes=(1, 2)) as plan:  # of real elements: as rfftn
    plan.plan()
    a = plan.execute(stream=first)
    plan.reset_operand(2 * image)
    b = plan.execute(stream=second)

expected = np.fft.rfftn(2 * image.numpy(), axes=(1, 2))
print("as NumPy:", np.allclose(again.numpy(), signal.numpy()), np.allclose(b.numpy(), expected))
print(padded.shape, padded.dtype)
