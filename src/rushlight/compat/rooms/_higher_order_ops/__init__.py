"""``torch._higher_order_ops``: operators that take functions."""

from rushlight.compat.rooms._higher_order_ops.associative_scan import associative_scan
from rushlight.compat.rooms._higher_order_ops.control_flow import cond, map, scan, while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
