"""``torch._higher_order_ops``: operators that take functions."""

from rushlight.compat.rooms._higher_order_ops.associative_scan import associative_scan
from rushlight.compat.rooms._higher_order_ops.cond import cond
from rushlight.compat.rooms._higher_order_ops.map import map
from rushlight.compat.rooms._higher_order_ops.out_dtype import out_dtype
from rushlight.compat.rooms._higher_order_ops.scan import scan
from rushlight.compat.rooms._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "out_dtype", "scan", "while_loop"]
