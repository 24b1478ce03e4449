"""torch.fft: discrete Fourier transforms."""

from typing import TYPE_CHECKING

from rushlight.dispatch.registry import NAMESPACES

if TYPE_CHECKING:
    from rushlight.stubs.fft import *  # noqa: F403

globals().update(NAMESPACES["fft"])
