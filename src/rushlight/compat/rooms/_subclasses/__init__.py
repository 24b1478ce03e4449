"""``torch._subclasses``: tensors that PyTorch's compiler traces with."""

from rushlight.compat.rooms._subclasses import fake_tensor
from rushlight.compat.rooms._subclasses.fake_tensor import CrossRefFakeMode, FakeTensor, FakeTensorMode  # type: ignore[attr-defined]

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode", "fake_tensor"]
