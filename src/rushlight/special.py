"""torch.special: special functions."""

from typing import TYPE_CHECKING

from rushlight.dispatch import functions as ops  # noqa: F401
from rushlight.dispatch.registry import NAMESPACES

if TYPE_CHECKING:
    from rushlight.stubs.special import *  # noqa: F403

globals().update(NAMESPACES["special"])
for _name in ("softmax", "log_softmax", "logsumexp"):
    globals()[_name] = NAMESPACES[""][_name]
