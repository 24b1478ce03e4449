"""``torch._tensor``: where PyTorch keeps the class."""

from rushlight.serialization.rebuild import _rebuild_from_type_v2
from rushlight.tensor import Tensor

__all__ = ["Tensor", "_rebuild_from_type_v2"]
