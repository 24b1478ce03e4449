"""Connectionist temporal classification.  What is saved are the probabilities' logarithms and the labels.

Source: Graves et al., Connectionist Temporal Classification (2006), in logarithms, all samples at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.ops.loss.loss import reduction_of
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


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

    def emitted(self, log_probs: Array, t: int) -> Array:
        """The logarithm of each state's probability at step `t`."""
        return np.take_along_axis(log_probs[t], self.labels, 1)

    def forwards(self, log_probs: Array) -> Array:
        """For every step, the logarithm of the probability of all ways to each state.  -> (T, N, 2 * S + 1)"""
        out = np.full((len(log_probs), *self.labels.shape), -np.inf, log_probs.dtype)
        for t in range(len(log_probs)):
            emitted = self.emitted(log_probs, t)
            if t == 0:
                out[0, :, :2] = emitted[:, :2]
            else:
                self.advance(out[t - 1], out[t])
                out[t] += emitted
        return out

    def advance(self, old: Array, new: Array) -> None:
        """One step along the states."""
        new[...] = old
        new[:, 1:] = np.logaddexp(new[:, 1:], old[:, :-1])
        skipped = np.where(self.skip[:, 2:], old[:, :-2], -np.inf)
        new[:, 2:] = np.logaddexp(new[:, 2:], skipped)

    def losses(self, alpha: Array) -> Array:
        """Minus the logarithm of each sample's probability."""
        if not len(alpha):
            return np.where(self.sizes == 0, -0.0, np.inf)
        last = alpha[np.maximum(self.steps - 1, 0), self.rows]
        end = last[self.rows, 2 * self.sizes]
        label = np.where(self.sizes > 0, last[self.rows, np.maximum(2 * self.sizes - 1, 0)], -np.inf)
        empty = np.where(self.sizes == 0, -0.0, np.inf)
        return np.where(self.steps > 0, -np.logaddexp(end, label), empty).astype(alpha.dtype)

    def backwards(self, old: Array, t: int) -> Array:
        """The logarithm of the probability of all ways from each state after step `t` to the end."""
        new = old.copy()
        new[:, :-1] = np.logaddexp(new[:, :-1], old[:, 1:])
        skipped = np.where(self.skip[:, 2:], old[:, 2:], -np.inf)
        new[:, :-2] = np.logaddexp(new[:, :-2], skipped)
        ends = np.nonzero(self.steps == t + 1)[0]
        new[ends] = -np.inf
        new[ends, 2 * self.sizes[ends]] = 0
        some = ends[self.sizes[ends] > 0]
        new[some, 2 * self.sizes[some] - 1] = 0
        return new

    def slopes(self, log_probs: Array, loss: Array, alpha: Array) -> Array:
        """The gradient of each sample's loss, in the form that holds behind log_softmax.  -> (T, N, C)"""
        out = np.exp(log_probs)
        after = np.full(self.labels.shape, -np.inf, log_probs.dtype)
        classes = log_probs.shape[2]
        flat = (self.rows[:, None] * classes + self.labels).reshape(-1)
        for t in range(len(log_probs) - 1, -1, -1):
            after = self.backwards(after, t)
            share = np.exp(alpha[t] + after + loss[:, None])
            out[t] -= np.bincount(flat, share.reshape(-1), out[t].size).reshape(out[t].shape)
            out[t][t >= self.steps] = 0
            after += self.emitted(log_probs, t)
        return out


@op(autocast="float32", ns=None, name="ctc_loss", refuse="bic")
def ctc_op(log_probs: Array, paths: Paths, zero_infinity: bool) -> Array:
    """Minus the logarithm of the probability of each sample's labels.  (T, N, C) -> (N,)"""
    with np.errstate(all="ignore"):
        return paths.losses(paths.forwards(log_probs)).astype(log_probs.dtype)


ctc_op.grad("log_probs")(lambda g, log_probs, paths, zero_infinity: ctc_backward(g, log_probs, paths, zero_infinity))


@op(ns=None, name="ctc_loss_backward")
def ctc_backward(grad: Array, log_probs: Array, paths: Paths, zero_infinity: bool) -> Array:
    """The gradient of `ctc_op`.  (N,), (T, N, C) -> (T, N, C)"""
    with np.errstate(all="ignore"):
        alpha = paths.forwards(log_probs)
        loss = paths.losses(alpha)
        out = paths.slopes(log_probs, loss, alpha)
        out *= grad[:, None]
        impossible = (loss == np.inf) & (np.arange(len(out))[:, None] < paths.steps)
        out[impossible] = 0 if zero_infinity else np.nan
    return out


@ctc_backward.grad("grad", "log_probs")
def _(g: Array | Tensor) -> Any:
    # The gradient is the one that holds behind log_softmax, so that its transpose is no tangent of other directions.
    raise NotImplementedError("ctc_loss: the second derivative (create_graph=True) is not implemented")


# Arguments ----------------------------------------------------------------------------------------------------------


def lengths_of(name: str, lengths: tuple[int, ...], n: int, most: int | None) -> Array:
    """Lengths given as a tensor or a sequence of ints, as an array (N,).  Raises RuntimeError where they do not fit."""
    values = np.asarray(lengths._array if isinstance(lengths, Tensor) else lengths)
    if values.dtype.kind not in "iu" and values.size:
        kind = lengths.dtype if isinstance(lengths, Tensor) else values.dtype
        raise RuntimeError(f"ctc_loss(): {name} must be integral: a tensor or tuple of ints, got {kind}")
    values = values.reshape(-1).astype(np.int64)
    if len(values) != n:
        raise RuntimeError(f"ctc_loss: {name} must be of size batch_size: expected {n}, got {len(values)}")
    if n and values.min() < 0:
        raise RuntimeError(f"ctc_loss: Expected {name} to have value at least 0, but got value {values.min()}")
    if most is not None and n and values.max() > most:
        raise RuntimeError(f"ctc_loss: Expected {name} to have value at most {most}, but got value {values.max()}")
    return values


def check_targets(targets: Array, sizes: Array, classes: int, blank: int) -> None:
    """Raise RuntimeError where the labels do not fit their lengths, the classes or the blank."""
    if not 0 <= as_int(blank, "ctc_loss", "blank") < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range: got {blank} for {classes} classes")
    if targets.ndim == 2 and targets.shape[1] < sizes.max(initial=0):
        raise RuntimeError(f"ctc_loss: Expected targets to have size at least {sizes.max()} at dimension 1, but got "
                           f"size {targets.shape[1]}")  # fmt: skip
    if targets.ndim == 1 and targets.size != sizes.sum():
        raise RuntimeError(f"ctc_loss: Expected targets to have size {sizes.sum()} at dimension 0, but got size "
                           f"{targets.size}")  # fmt: skip
    if targets.ndim == 2 and len(targets) != len(sizes):
        raise RuntimeError(f"ctc_loss: Expected targets to have size {len(sizes)} at dimension 0, but got size "
                           f"{len(targets)}")  # fmt: skip
    if targets.ndim > 2:
        raise RuntimeError(f"ctc_loss: targets should be 1 or 2 dimensional, got {targets.ndim} dimensions")
    used = targets if targets.ndim == 1 else targets[np.arange(targets.shape[1]) < sizes[:, None]]
    if used.size and (used.min() < 0 or used.max() >= classes):
        raise RuntimeError(f"ctc_loss: targets must be in [0, {classes}), got {used.min()} to {used.max()}")


@function(ns=F)
@per_sample
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """Minus the logarithm of the probability of all alignments of the labels, reduced.  -> () or (N,)

    log_probs: (T, N, C), or (T, C) of one sample, from log_softmax. targets: (N, S), or all labels in one row.
    input_lengths, target_lengths: (N,), tensors or sequences. blank: the label that stands for none. The mean divides
    each loss by its number of labels first. zero_infinity: losses that are infinite, and their gradients, become 0.
    Raises RuntimeError where sizes do not fit.
    """
    reduction = reduction_of(reduction)
    lone = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if lone else log_probs
    if x.ndim != 3:
        raise RuntimeError(f"ctc_loss: log_probs should be 2 or 3 dimensional, got {log_probs.ndim} dimensions")
    steps, n, classes = x.shape
    if not x.numel():
        raise RuntimeError(f"ctc_loss: log_probs tensor must not be empty, got shape {list(log_probs.shape)}")
    labels = targets._array.astype(np.int64, copy=False)
    labels = labels.reshape(1, -1) if lone and labels.ndim < 2 else labels
    starts = lengths_of("input_lengths", input_lengths, n, steps)
    sizes = lengths_of("target_lengths", target_lengths, n, None)
    check_targets(labels, sizes, classes, blank)
    loss = ctc_op(x, Paths(labels, starts, sizes, blank), bool(zero_infinity))
    if zero_infinity:
        loss = ops.masked_fill(loss, wrap(loss._array == np.inf), 0)
    if reduction == "mean":
        return ops.mean(loss / wrap(np.maximum(sizes, 1).astype(loss._array.dtype)))
    if reduction == "sum":
        return ops.sum(loss)
    return loss.squeeze(0) if lone else loss


def torch_ctc_loss(log_probs: Tensor, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
                   reduction: int = 0, zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """As torch.nn.functional.ctc_loss; reduction 0 none, 1 mean, 2 sum."""
    kind = ("none", "mean", "sum")[reduction]
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)


known_as(torch_ctc_loss, "ctc_loss")
NAMESPACES[""]["ctc_loss"] = torch_ctc_loss
