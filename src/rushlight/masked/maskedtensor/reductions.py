"""Reductions of masked tensors, by their names."""

from rushlight.masked._ops import REDUCE_NAMES

__all__ = ["REDUCE_NAMES"]
