"""``torch.autograd._functions``: functions written in Python."""

from rushlight.autograd._functions.tensor import Resize

__all__ = ["Resize"]
