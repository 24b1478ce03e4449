"""Connectionist temporal classification, in NumPy.

Source: Graves et al., Connectionist Temporal Classification (2006), in logarithms, all samples at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

__all__ = ["Paths", "ctc", "ctc_backward"]


class Paths:
    """The states of a batch: a blank before, between and after the labels of each sample.

    labels: (N, 2 * S + 1); skip: where the state two before may be the one before; steps, sizes: lengths (N,).
    """

    def __init__(self, targets: Array, steps: Array, sizes: Array, blank: int):
        n = len(sizes)
        longest = int(sizes.max(initial=0))
        self.steps, self.sizes, self.rows = steps, sizes, np.arange(n)
        self.labels = np.full((n, 2 * longest + 1), blank, np.int64)
        if targets.ndim == 2:
            self.labels[:, 1::2] = targets[:, :longest]
        else:
            at = np.arange(longest) < sizes[:, None]
            self.labels[:, 1::2][at] = targets
        self.labels[np.arange(2 * longest + 1) > 2 * sizes[:, None]] = blank
        self.skip = np.zeros(self.labels.shape, bool)
        self.skip[:, 2:] = (self.labels[:, 2:] != blank) & (self.labels[:, 2:] != self.labels[:, :-2])

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Labels, where may be skipped, lengths of inputs and of labels."""
        return self.labels, self.skip, self.steps, self.sizes


def ctc(log_probs: Array, paths: Paths) -> Array:
    """Minus the logarithm of the probability of each sample's labels.  (T, N, C) -> (N,)"""
    with np.errstate(all="ignore"):
        return _losses(_forwards(log_probs, paths), paths)


def ctc_backward(g: Array, log_probs: Array, paths: Paths, zero_infinity: bool) -> Array:
    """The gradient of `ctc` in the form that holds behind log_softmax; of infinite losses NaN, or 0.  (N,), (T, N, C) -> (T, N, C)"""
    with np.errstate(all="ignore"):
        alpha = _forwards(log_probs, paths)
        loss = _losses(alpha, paths)
        out = _slopes(log_probs, loss, alpha, paths)
        out *= g[:, None]
        impossible = (loss == np.inf) & (np.arange(len(out))[:, None] < paths.steps)
        out[impossible] = 0 if zero_infinity else np.nan
    return out


def _emitted(log_probs: Array, t: int, paths: Paths) -> Array:
    """The logarithm of each state's probability at step `t`."""
    return np.take_along_axis(log_probs[t], paths.labels, 1)


def _forwards(log_probs: Array, paths: Paths) -> Array:
    """For every step, the logarithm of the probability of all ways to each state.  -> (T, N, 2 * S + 1)"""
    out = np.full((len(log_probs), *paths.labels.shape), -np.inf, log_probs.dtype)
    for t in range(len(log_probs)):
        emitted = _emitted(log_probs, t, paths)
        if t == 0:
            out[0, :, :2] = emitted[:, :2]
        else:
            _advance(out[t - 1], out[t], paths)
            out[t] += emitted
    return out


def _advance(old: Array, new: Array, paths: Paths) -> None:
    """One step along the states."""
    new[...] = old
    new[:, 1:] = np.logaddexp(new[:, 1:], old[:, :-1])
    skipped = np.where(paths.skip[:, 2:], old[:, :-2], -np.inf)
    new[:, 2:] = np.logaddexp(new[:, 2:], skipped)


def _losses(alpha: Array, paths: Paths) -> Array:
    """Minus the logarithm of each sample's probability."""
    steps, sizes, rows = paths.steps, paths.sizes, paths.rows
    empty: Any = np.where(sizes == 0, -0.0, np.inf)
    if not len(alpha):
        return np.asarray(empty.astype(alpha.dtype))
    last = alpha[np.maximum(steps - 1, 0), rows]
    end = last[rows, 2 * sizes]
    label = np.where(sizes > 0, last[rows, np.maximum(2 * sizes - 1, 0)], -np.inf)
    return np.asarray(np.where(steps > 0, -np.logaddexp(end, label), empty).astype(alpha.dtype))


def _backwards(old: Array, t: int, paths: Paths) -> Array:
    """The logarithm of the probability of all ways from each state after step `t` to the end."""
    new = old.copy()
    new[:, :-1] = np.logaddexp(new[:, :-1], old[:, 1:])
    skipped = np.where(paths.skip[:, 2:], old[:, 2:], -np.inf)
    new[:, :-2] = np.logaddexp(new[:, :-2], skipped)
    ends = np.nonzero(paths.steps == t + 1)[0]
    new[ends] = -np.inf
    new[ends, 2 * paths.sizes[ends]] = 0
    some = ends[paths.sizes[ends] > 0]
    new[some, 2 * paths.sizes[some] - 1] = 0
    return new


def _slopes(log_probs: Array, loss: Array, alpha: Array, paths: Paths) -> Array:
    """The gradient of each sample's loss.  -> (T, N, C)"""
    out: Any = np.exp(log_probs)
    after: Any = np.full(paths.labels.shape, -np.inf, log_probs.dtype)
    flat = (paths.rows[:, None] * log_probs.shape[2] + paths.labels).reshape(-1)
    for t in range(len(log_probs) - 1, -1, -1):
        after = _backwards(after, t, paths)
        share = np.exp(alpha[t] + after + loss[:, None])
        out[t] -= np.bincount(flat, share.reshape(-1), out[t].size).reshape(out[t].shape)
        out[t][t >= paths.steps] = 0
        after += _emitted(log_probs, t, paths)
    return np.asarray(out)
