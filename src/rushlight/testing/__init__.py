"""torch.testing: assertions on tensors and trees of them, and tensors to test with."""

from rushlight.testing.closeness import assert_allclose, assert_close
from rushlight.testing.creation import make_tensor
from rushlight.testing.file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
