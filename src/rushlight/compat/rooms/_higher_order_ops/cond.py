"""``torch._higher_order_ops.cond``: one of two functions."""

from rushlight.compat.rooms._higher_order_ops.control_flow import cond

__all__ = ["cond"]
