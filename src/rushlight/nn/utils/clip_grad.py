"""Clipping gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.basics import events, groups
from rushlight.basics.caller import warn
from rushlight.basics.errors import explained
from rushlight.basics.state import special
from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.nn._linalg import linalg
from rushlight.ops.python import lists
from rushlight.tensor import Tensor, wrap

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Tensor | list[Any]) -> list[Any]:
    """The gradients of one parameter or of an iterable of them, those that exist."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if special.launcher is not None and special.launcher.owner_of(listed) is not None:
        raise explained(
            RuntimeError(
                "clipping the gradients of parameters that have been stepped: their optimizer steps inside backward "
                "(optim.in_backward), which leaves no gradients. Pass the same clip_grad_norm or clip_grad_value to in_backward: then "
                "this call gives the norm that was found, as `grad_norm` of its handle does."
            ),
            "clipped-after-the-step",
        )
    return [p.grad for p in listed if p.grad is not None]


def _clipped(parameters: list[Any], **asked: Any) -> Any:
    """What steps of an optimizer inside backward share that clipped these gradients so already; None elsewhere."""
    return None if special.launcher is None else special.launcher.clipped(parameters, asked)


def get_total_norm(
    tensors: Sequence[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as if they were one vector: a 0-d tensor.

    Raises RuntimeError for an infinite or NaN norm with `error_if_nonfinite`.  `foreach` is accepted and ignored.
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not listed:
        return ops.tensor(0.0)
    with no_grad():
        total = _total(listed, norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def _total(tensors: list[Any], norm_type: float) -> Tensor:
    """The norm of all tensors: of one, or of their norms."""
    found = lists.norms(tensors) if norm_type == 2 else None
    norms: Any = norms_of(tensors, norm_type) if found is None else wrap(found)
    if len(tensors) == 1:
        return norms[0]
    return linalg("vector_norm")(ops.stack(norms) if found is None else norms, norm_type)


def norms_of(tensors: list[Any], norm_type: float) -> list[Any]:
    """The norm of each tensor; those that lie on several processes ask them all, in one message."""
    if not any(t._spread for t in tensors):
        return [linalg("vector_norm")(t, norm_type) for t in tensors]
    found = groups.averaging["norms_over"](tensors, norm_type)
    return [wrap(np.asarray(value, t._held.dtype)) for value, t in zip(found, tensors, strict=True)]


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients in place by `max_norm / (total_norm + 1e-6)` where that is less than 1."""
    norm: Any = total_norm
    factor = (float(max_norm) / (norm + 1e-6)).clamp(max=1.0)
    gradients = _gradients(parameters)
    with no_grad():
        if factor.__class__ is Tensor and lists.multiply(gradients, factor.item()):
            return
        for gradient in gradients:
            gradient.mul_(factor)


def clip_grad_norm_(
    parameters: object,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters in place so that their joint norm is at most `max_norm`.

    Args:
        parameters: one tensor or an iterable of them.
        norm_type: order of the norm, `inf` for the largest magnitude.
        error_if_nonfinite: raise RuntimeError for an infinite or NaN norm.
        foreach: accepted and ignored.

    Returns the norm before clipping.  After a step inside backward that clips so (`optim.in_backward(..., clip_grad_norm=max_norm)`)
    that is all that is done.
    """
    if not isinstance(parameters, (Tensor, Iterable)):
        raise TypeError(
            f"clip_grad_norm_: `parameters` must be a tensor or an iterable of them, got {type(parameters).__name__}"
        )
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not listed and isinstance(parameters, Iterator):
        warn("`parameters` is an empty generator, no gradient clipping will occur.", UserWarning)
    if special.observing:
        further = f", norm_type={float(norm_type)!r}" if norm_type != 2 else ""
        events.treated(f"clip_grad_norm={float(max_norm)!r}{further}")
    nonfinite = {"nonfinite": True} if error_if_nonfinite else {}
    done = _clipped(listed, limit=float(max_norm), norm_type=float(norm_type), **nonfinite)
    if done is not None:
        return done.norm
    total = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: object,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated: use `clip_grad_norm_`."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value], in place; nothing where a step inside backward did."""
    limit = float(clip_value)
    if special.observing:
        events.treated(f"clip_grad_value={limit!r}")
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if _clipped(listed, value=limit) is not None:
        return
    gradients = _gradients(listed)
    with no_grad():
        if lists.clamp(gradients, -limit, limit):
            return
        for gradient in gradients:
            gradient.clamp_(min=-limit, max=limit)


_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_  # their former names
