"""torch.special: special functions."""

from rushlight import ops
from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["special"])
for _name in ("softmax", "log_softmax", "logsumexp"):
    globals()[_name] = getattr(ops, _name)
__all__ = [*NAMESPACES["special"], "log_softmax", "logsumexp", "softmax"]
