"""torch.fft: discrete Fourier transforms."""

from typing import TYPE_CHECKING

from rushlight.dispatch.registry import NAMESPACES
from rushlight.tensor import Tensor  # noqa: F401  # PyTorch's module has it too

if TYPE_CHECKING:
    from rushlight.stubs.fft import *  # noqa: F403

globals().update(NAMESPACES["fft"])
