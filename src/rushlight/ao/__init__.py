"""``torch.ao``: quantization, of which the names are there that models mention."""

from rushlight.ao import nn, quantization

__all__ = ["nn", "quantization"]
