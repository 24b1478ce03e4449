"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.dispatch import functions as ops
from rushlight.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """All parameters flattened into one vector."""
    return ops.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Any]) -> None:
    """Let the parameters be pieces of the vector, one after the other.  Raises TypeError for what is no tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    vector: Any = vec
    start = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.data = vector[start : start + size].view_as(parameter).data
        start += size
