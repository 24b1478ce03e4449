"""``torch.ao``: quantization, of which the names are there that models mention."""

from rushlight.ao import quantization

__all__ = ["quantization"]
