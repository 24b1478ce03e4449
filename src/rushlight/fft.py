"""torch.fft: discrete Fourier transforms."""

from rushlight.dispatch.registry import NAMESPACES

globals().update(NAMESPACES["fft"])
