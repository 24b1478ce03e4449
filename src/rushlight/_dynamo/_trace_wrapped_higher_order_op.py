"""A mode of PyTorch's compiler: of no effect where nothing is compiled."""

import contextlib

__all__ = ["TransformGetItemToIndex"]

TransformGetItemToIndex = contextlib.nullcontext
