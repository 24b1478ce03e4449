"""Rows added by index, cross entropy from logits, dropout, in NumPy.  See ``kernels.gather``."""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK = 65536


def index_add_rows(dst: Array, idx: Array, src: Array) -> None:
    # sorted by row, so that one reduceat adds the repeats; then each row is written once
    if not idx.size:
        return
    order = np.argsort(idx, kind="stable")
    rows, starts = np.unique(idx[order], return_index=True)
    dst[rows] += np.add.reduceat(src[order], starts, axis=0, dtype=src.dtype)


def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float
) -> tuple[Array, Array, Array]:
    with np.errstate(all="ignore"):
        top = np.fmax.reduce(x, axis=1, initial=-np.inf)
        lse = np.asarray(top + np.log(np.exp(x - top[:, None]).sum(axis=1)))
        ignored = target == ignore_index
        safe = np.where(ignored, 0, target)
        loss = lse - np.take_along_axis(x, safe[:, None], axis=1)[:, 0]
        if weight is not None:
            loss *= weight[safe]
        if smoothing:
            spread = lse[:, None] - x
            total = spread.sum(axis=1) if weight is None else spread @ weight
            loss = (1 - smoothing) * loss + smoothing / x.shape[1] * total
    loss = np.where(ignored, x.dtype.type(0), loss)
    count = np.count_nonzero(~ignored) if weight is None else weight[target[~ignored]].sum(dtype=np.float64)
    return loss, lse, np.array([loss.sum(dtype=np.float64), count])


def cross_entropy_backward(
    g: Array,
    x: Array,
    lse: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int,
    smoothing: float,
    out: Array | None,
) -> Array:
    classes = x.shape[1]
    ignored = target == ignore_index
    safe = np.where(ignored, 0, target)
    direct = np.where(ignored, x.dtype.type(0), g) * (1 - smoothing)
    if weight is not None:
        direct = direct * weight[safe]
    spread = np.where(ignored, x.dtype.type(0), g) * (smoothing / classes)
    total = classes if weight is None else weight.sum()
    with np.errstate(all="ignore"):
        out = np.subtract(x, lse[:, None], out=out)
        np.exp(out, out=out)
        out *= (direct + spread * total)[:, None]
    if smoothing:
        out -= spread[:, None] if weight is None else spread[:, None] * weight
    out[np.arange(len(out)), safe] -= direct
    out[ignored] = 0
    return out


def scale_by_bits(x: Array, bits: Array, scale: float) -> Array:
    """x * scale where the bit is set, x * 0 elsewhere.  x: contiguous."""
    out = np.empty_like(x)
    flat, target = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, BLOCK):
        stop = min(start + BLOCK, x.size)
        keep = np.unpackbits(bits[start // 8 : (stop + 7) // 8], count=stop - start, bitorder="little")
        target[start:stop] = flat[start:stop] * (keep * x.dtype.type(scale))
    return out
