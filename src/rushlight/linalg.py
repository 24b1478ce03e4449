"""torch.linalg: linear algebra."""

from rushlight.ops.linalg import LinAlgError as LinAlgError
from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["linalg"])
