"""Discrete Fourier transforms of arrays of any package; names, shapes, lengths and norms are NumPy's.

The result is of the operand's package: a tensor of torch gives a tensor of torch. Calls on arrays of other packages on
the CPU return once they are computed, since the package may change the elements at any time. Calls on GPU arrays are
enqueued on the stream that the package works on now, unless ``stream`` names another, and return at once; the result
is ordered on the package's stream. ``out`` is of the operand's package, too.
"""

from weir._weir.fft import FFT, fft, fftn, ifft, ifftn, irfft, irfftn, rfft, rfftn

__all__ = ["FFT", "fft", "fftn", "ifft", "ifftn", "irfft", "irfftn", "rfft", "rfftn"]
