"""torch.testing: assertions on tensors and trees of them, and tensors to test with."""

from rushlight.testing.closeness import assert_allclose, assert_close
from rushlight.testing.creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
