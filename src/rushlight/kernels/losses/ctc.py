"""Connectionist temporal classification: the probability of all ways to the labels of each sample, and its slopes."""

from __future__ import annotations

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import ctc as reference
from rushlight.kernels.reference.ctc import Paths

__all__ = ["Paths", "ctc", "ctc_backward"]

exports(
    # ctc.cpp: log_probs, labels, which states may be skipped to, lengths of inputs and of labels, losses; steps,
    # samples, classes, states
    ctc="a" * 6 + "nnnn",
    # the losses' gradient, the same, the slopes in the place of losses; the slope of an infinite loss
    ctc_backward="a" * 7 + "nnnn" + "d",
)


def ctc(log_probs: Array, paths: Paths) -> Array:
    """Minus the logarithm of the probability of each sample's labels.  (T, N, C) -> (N,)"""
    table = native(log_probs.dtype) if log_probs.size else None
    if table is None:
        return reference.ctc(log_probs, paths)
    out = np.empty(len(paths.sizes), log_probs.dtype)
    table.ctc(_rows(log_probs), *paths.arrays(), out, *log_probs.shape, paths.labels.shape[1])
    return out


def ctc_backward(g: Array, log_probs: Array, paths: Paths, zero_infinity: bool) -> Array:
    """The gradient of `ctc` in the form that holds behind log_softmax; of infinite losses NaN, or 0.  (N,), (T, N, C) -> (T, N, C)"""
    table = native(log_probs.dtype) if log_probs.size and g.dtype == log_probs.dtype else None
    if table is None:
        return reference.ctc_backward(g, log_probs, paths, zero_infinity)
    out, impossible = np.empty(log_probs.shape, log_probs.dtype), 0.0 if zero_infinity else np.nan
    table.ctc_backward(
        contiguous(g), _rows(log_probs), *paths.arrays(), out, *log_probs.shape, paths.labels.shape[1], impossible
    )
    return out


def _rows(x: Array) -> Array:
    """`x` as it is where the last dimension has no gaps and the others' strides are whole elements, else a copy."""
    lies = x.flags.aligned and (x.shape[-1] == 1 or x.strides[-1] == x.itemsize)
    return x if lies and not any(stride % x.itemsize for stride in x.strides) else contiguous(x)
