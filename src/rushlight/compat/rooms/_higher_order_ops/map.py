"""``torch._higher_order_ops.map``: a function of each row."""

from rushlight.compat.rooms._higher_order_ops.control_flow import map

__all__ = ["map"]

_fake_map = map  # by which PyTorch's own tests compare it
