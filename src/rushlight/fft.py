"""torch.fft: discrete Fourier transforms."""

from rushlight import ops
from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["fft"])
__all__ = [*NAMESPACES["fft"]]
_ = ops
