"""``torch.ao.nn``: layers whose weights are rounded while they train."""

from rushlight.ao.nn import qat, quantizable, quantized

__all__ = ["qat", "quantizable", "quantized"]
