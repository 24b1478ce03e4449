"""torch.special: special functions."""

from rushlight.dispatch import functions as ops  # noqa: F401
from rushlight.dispatch.registry import NAMESPACES

globals().update(NAMESPACES["special"])
for _name in ("softmax", "log_softmax", "logsumexp"):
    globals()[_name] = NAMESPACES[""][_name]
