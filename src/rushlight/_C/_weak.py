"""``torch._C._WeakTensorRef``: whether a tensor is still held."""

from __future__ import annotations

import weakref

from rushlight.tensor import Tensor


class WeakTensorRef:
    """A reference to a tensor that does not keep it."""

    __slots__ = ("_to",)

    def __init__(self, tensor: Tensor) -> None:
        self._to = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether nobody holds the tensor any more."""
        return self._to() is None
