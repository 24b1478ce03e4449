"""torch.signal: windows for spectral analysis."""

from rushlight.signal import windows

__all__ = ["windows"]
