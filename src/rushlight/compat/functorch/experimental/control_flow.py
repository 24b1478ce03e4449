"""``functorch.experimental.control_flow``: branches and maps, which are `torch.cond` and its like."""

from rushlight.compat.rooms._higher_order_ops.control_flow import cond, map

__all__ = ["cond", "map"]
