"""What lies between the two products of attention, in NumPy, on a block of scores (heads, rows, columns) in place.

The same arguments as the native kernels: a mask is added, or bool and keeps the columns where it is true; with
``first >= 0`` row r of the block sees columns up to ``first + r``.
"""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import summed


def _masked(scores: Array, mask: Array | None, first: int, scale: float) -> None:
    scores *= scale
    if mask is not None and mask.dtype != bool:
        scores += mask
    elif mask is not None:
        np.copyto(scores, -np.inf, where=~mask)
    if first >= 0:
        rows, columns = scores.shape[1:]
        scores[:, np.arange(columns) > first + np.arange(rows)[:, None]] = -np.inf


def attention_softmax(scores: Array, mask: Array | None, lse: Array, first: int, scale: float) -> None:
    with np.errstate(all="ignore"):
        _masked(scores, mask, first, scale)
        top = np.fmax.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
        top[top == -np.inf] = 0
        scores -= top
        np.exp(scores, out=scores)
        total = scores.sum(axis=-1, keepdims=True)
        lse[...] = (top + np.log(total))[..., 0]
        scores /= np.where(total == 0, 1, total)


def attention_again(scores: Array, mask: Array | None, lse: Array, first: int, scale: float) -> None:
    with np.errstate(all="ignore"):
        _masked(scores, mask, first, scale)
        scores -= np.where(lse == -np.inf, np.inf, lse)[..., None]
        np.exp(scores, out=scores)
        # Beside a score as large as the least number, of which masks are made, the logarithm of the sum is lost in rounding.
        total = scores.sum(axis=-1, keepdims=True)
        scores /= np.where(total == 0, 1, total)


def attention_slope(p: Array, d: Array, scale: float) -> None:
    with np.errstate(all="ignore"):
        total = p.sum(axis=-1)
        d -= (summed("hls,hls->hl", p, d) / np.where(total == 0, 1, total))[..., None]
    d *= p
    d *= scale
