"""``torch._lobpcg``: `torch.lobpcg`."""

from rushlight.compat.segments import lobpcg

__all__ = ["lobpcg"]
