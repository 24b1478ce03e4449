"""Operators: importing this package declares all of them and attaches the methods of Tensor."""

from __future__ import annotations

from typing import Any

from rushlight.ops import (
    activation,
    arith,
    batch_norm,
    cdist,
    clamp,
    compare,
    complexes,
    convert,
    convolution,
    create,
    cross_entropy,
    diagonal,
    differences,
    distance,
    divide,
    dropout,
    einsum,
    embedding,
    embedding_bag,
    extrema,
    factories,
    fill,
    fourier,
    grid,
    histogram,
    index_select,
    indexing,
    indexing_advanced,
    join,
    legacy,
    like_new,
    linear_cross_entropy,
    logic,
    loss,
    loss_binary,
    loss_margin,
    masked,
    matmul,
    normalization,
    norms,
    operators,
    padding,
    pooling,
    power,
    printing,
    products,
    protocols,
    quantile,
    random,
    rearrange,
    rectifier,
    reduce,
    resample,
    rounding,
    scan,
    scatter,
    scatter_reduce,
    scatter_slices,
    shape,
    softmax,
    sort,
    stacking,
    statistics,
    strided,
    take,
    unary,
    unfold,
    unique,
    views,
    views_inplace,
    views_more,
    views_split,
)
from rushlight.ops.registry import NAMESPACES

__all__ = ["NAMESPACES", "arith", "convert", "create", "reduce", "shape"]


def __getattr__(name: str) -> Any:
    try:
        return NAMESPACES[""][name]
    except KeyError:
        raise AttributeError(f"module 'rushlight.ops' has no attribute {name!r}") from None
