"""torch.special: special functions."""

from rushlight.ops import functions as ops  # noqa: F401
from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["special"])
for _name in ("softmax", "log_softmax", "logsumexp"):
    globals()[_name] = NAMESPACES[""][_name]
