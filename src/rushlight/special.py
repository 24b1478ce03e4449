"""torch.special: special functions."""

from rushlight import ops  # noqa: F401
from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["special"])
for _name in ("softmax", "log_softmax", "logsumexp"):
    globals()[_name] = NAMESPACES[""][_name]
