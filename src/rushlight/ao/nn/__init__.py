"""``torch.ao.nn``: layers whose weights are rounded while they train."""

from rushlight.ao.nn import qat

__all__ = ["qat"]
