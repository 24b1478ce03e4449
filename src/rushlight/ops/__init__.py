"""Operators: importing this package declares all of them and attaches the methods of Tensor."""

from __future__ import annotations

from typing import Any

from rushlight.ops import (
    activation,
    arith,
    attention,
    batch_norm,
    bilinear,
    cdist,
    clamp,
    compare,
    complexes,
    convert,
    convolution,
    create,
    cross_entropy,
    ctc,
    diagonal,
    differences,
    distance,
    divide,
    dropout,
    einsum,
    elu,
    embedding,
    embedding_bag,
    extrema,
    factories,
    fill,
    fourier,
    gamma,
    grid,
    histogram,
    index_select,
    indexing,
    indexing_advanced,
    interchange,
    join,
    legacy,
    like_new,
    linalg,
    linalg_more,
    linear_cross_entropy,
    logic,
    loss,
    loss_binary,
    loss_margin,
    loss_names,
    lowrank,
    lu,
    mapping,
    masked,
    matmul,
    memory,
    multihead,
    normalization,
    norms,
    observed,
    operators,
    padding,
    pairs,
    polynomials,
    pooling,
    power,
    printing,
    products,
    protocols,
    quantile,
    random,
    random_fill,
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
    special,
    spectral,
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
    if name == "aten":
        import importlib

        return importlib.import_module("rushlight.ops.aten")
    try:
        return NAMESPACES[""][name]
    except KeyError:
        raise AttributeError(f"module 'rushlight.ops' has no attribute {name!r}") from None
