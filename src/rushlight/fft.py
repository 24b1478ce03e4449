"""torch.fft: discrete Fourier transforms."""

from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["fft"])
