"""Connectionist temporal classification.  What is saved are the probabilities' logarithms and the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.kernels.losses.ctc import Paths
from rushlight.ops.loss.loss import reduction_of
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


@op(autocast="float32", name="ctc_loss", refuse="bic")
def ctc_op(log_probs: Array, paths: Paths, zero_infinity: bool) -> Array:
    """Minus the logarithm of the probability of each sample's labels.  (T, N, C) -> (N,)"""
    return backend.ctc(log_probs, paths)


ctc_op.grad("log_probs")(lambda g, log_probs, paths, zero_infinity: ctc_backward(g, log_probs, paths, zero_infinity))


@op(name="ctc_loss_backward")
def ctc_backward(grad: Array, log_probs: Array, paths: Paths, zero_infinity: bool) -> Array:
    """The gradient of `ctc_op`.  (N,), (T, N, C) -> (T, N, C)"""
    return backend.ctc_backward(grad, log_probs, paths, zero_infinity)


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
