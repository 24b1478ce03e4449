"""``torch._higher_order_ops.while_loop``: loops as long as something holds."""

from rushlight.compat.rooms._higher_order_ops.control_flow import while_loop

__all__ = ["while_loop"]
