"""torch.linalg: linear algebra."""

from rushlight.dispatch.registry import NAMESPACES
from rushlight.ops.linear.decompositions import LinAlgError as LinAlgError

globals().update(NAMESPACES["linalg"])
