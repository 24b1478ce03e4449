"""torch.linalg: linear algebra."""

from typing import TYPE_CHECKING

from rushlight.dispatch.registry import NAMESPACES

if TYPE_CHECKING:
    from rushlight.stubs.linalg import *  # noqa: F403
from rushlight.ops.linear.decompositions import LinAlgError as LinAlgError

globals().update(NAMESPACES["linalg"])
