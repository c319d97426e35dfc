"""Discrete Fourier transforms of arrays of Weir and NumPy; names, shapes, lengths and norms are NumPy's."""

from weir._weir.fft import FFT, fft, fftn, ifft, ifftn, irfft, irfftn, rfft, rfftn

__all__ = ["FFT", "fft", "fftn", "ifft", "ifftn", "irfft", "irfftn", "rfft", "rfftn"]
