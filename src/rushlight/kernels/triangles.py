"""Solving with triangular matrices that are small, or singular."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import triangles as reference

__all__ = ["substitute", "substitutes"]

exports(
    # triangles.cpp: triangular matrices, right sides, whether the upper triangle; returns whether the strides were such that it was done
    substitute="aai>n",
)


def substitutes(dtype: np.dtype[Any]) -> bool:
    """Whether there is a native kernel for numbers of a dtype."""
    return native(dtype) is not None


def substitute(A: Array, x: Array, upper: bool) -> None:
    """A^-1 x in place of x, row by row; what is divided by 0 becomes infinite.  The other triangle is not read.

    A: (*, N, N), which broadcasts to x, (*, N, M)
    """
    if not x.size:
        return
    table = native(x.dtype) if A.dtype == x.dtype else None
    whole = contiguous(x)
    batch = x.shape[:-2]
    matrices = A if A.shape[:-2] == batch else np.broadcast_to(A, (*batch, *A.shape[-2:]))
    matrices = matrices[None] if x.ndim == 2 else matrices.reshape(-1, *A.shape[-2:])
    if table is None or not table.substitute(matrices, whole.reshape(-1, *x.shape[-2:]), int(upper)):
        reference.substitute(A, whole, upper)
    if whole is not x:
        x[...] = whole
