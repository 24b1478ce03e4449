"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.ops.declare import Array
from rushlight.ops.registry import op
from rushlight.ops.shape import broadcast, reshape_op


def spread(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """The gradient of a reduction, broadcast over the dimensions that it reduced."""
    if not keepdim and dim != ():
        axes = {d % max(len(shape), 1) for d in (range(len(shape)) if dim is None else dim)}
        g = reshape_op(g, tuple(1 if i in axes else n for i, n in enumerate(shape)))
    return broadcast(g, shape)


@op(ns=None, linear=True,
    grads={"input": lambda g, input_shape, dim, keepdim: spread(g, input_shape, dim, keepdim)})  # fmt: skip
def sum_op(be: Any, input: Array, dim: Any = None, keepdim: bool = False) -> Array:  # noqa: A002
    """Sum over `dim` (a tuple, or None for all).  (*) -> (*)"""
    return np.add.reduce(input, axis=dim, keepdims=keepdim)
