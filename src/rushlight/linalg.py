"""torch.linalg: linear algebra."""

from rushlight import ops
from rushlight.ops.linalg import LinAlgError
from rushlight.ops.registry import NAMESPACES

globals().update(NAMESPACES["linalg"])
__all__ = ["LinAlgError", *NAMESPACES["linalg"]]
_ = ops
