"""A mode of PyTorch's compiler that libraries use with vmap."""

from rushlight.overrides.index_mode import TransformGetItemToIndex

__all__ = ["TransformGetItemToIndex"]
