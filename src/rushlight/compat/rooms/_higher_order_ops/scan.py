"""``torch._higher_order_ops.scan``: running results of a function that carries something along."""

from rushlight.compat.rooms._higher_order_ops.control_flow import scan

__all__ = ["scan"]

_fake_scan = scan  # by which PyTorch's own tests compare it
