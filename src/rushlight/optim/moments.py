"""Gradients accumulated in Adam's moments instead of in buffers.

Zhang et al., "Adam Accumulation to Reduce Memory Footprints of both Activations and Gradients for Large-scale DNN
Training" (2023, arXiv 2305.19982).  Of a step with the gradients g_1 ... g_k of k micro-batches the mean m is Adam's, from
their sum; the mean square is from g_1^2 + ... + g_k^2, where Adam has (g_1 + ... + g_k)^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.kernels.reference.optim import blocks, fitted
from rushlight.optim.adam import Adam
from rushlight.optim.options import number
from rushlight.optim.stepper import advance, raw, wide
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer


def refusal(optimizer: Any) -> str | None:
    """Why gradients cannot be accumulated in this optimizer's moments, or None if they can."""
    own = type(optimizer)
    if not isinstance(optimizer, Adam):
        return f"{own.__name__} does not have the moments of Adam: use Adam or AdamW, or accumulate_into='grad'"
    if own._update is not Adam._update or own._step_group is not Adam._step_group:
        return f"{own.__name__} has a step of its own: use Adam or AdamW, or accumulate_into='grad'"
    return None


def fold(optimizer: Any, p: Tensor, group: dict[str, Any], first: bool, count: int) -> None:
    """Add the gradient of a parameter to its moments; `first`: of a step, so that they decay before.

    count: how many will be added; an L2 penalty is shared out among them.
    """
    state = optimizer.state[p]
    if not state:
        optimizer._begin(state, p, group)
    beta1, beta2 = (number(b) for b in group["betas"])
    decays = (beta1, beta2) if first else (1.0, 1.0)
    penalty = 0.0 if group["decoupled_weight_decay"] else number(group["weight_decay"]) / count
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    with np.errstate(all="ignore"):
        whole, grad, *moments = fitted(raw(p), raw(p._grad), raw(mean), raw(square))
        for kept, kept_sq, g, param in blocks(*moments, grad, whole):
            g = -wide(g) if group["maximize"] else wide(g)
            g = g + penalty * wide(param) if penalty else g
            kept[...] = decays[0] * wide(kept) + (1 - beta1) * g
            kept_sq[...] = decays[1] * wide(kept_sq) + (1 - beta2) * g * g
    bump(mean, STEP)
    bump(square, STEP)


def apply(optimizer: Optimizer, p: Tensor, group: dict[str, Any]) -> None:
    """Step a parameter by its moments."""
    state = optimizer.state[p]
    step, lr, eps = advance(state), number(group["lr"]), group["eps"]
    beta1, beta2 = (number(b) for b in group["betas"])
    shrink = 1 - lr * number(group["weight_decay"]) if group["decoupled_weight_decay"] else 1.0
    size, root = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
    with np.errstate(all="ignore"):
        for param, mean, square in _moments(p, state, group["amsgrad"]):
            param[...] = shrink * wide(param) - size * wide(mean) / (np.sqrt(square) / root + eps)
    bump(p, STEP)


def _moments(p: Tensor, state: dict[str, Any], amsgrad: bool) -> Iterator[tuple[Any, Any, Any]]:
    """Blocks of a parameter, of the mean, and of the mean square that scales the step."""
    arrays = [raw(p), raw(state["exp_avg"]), raw(state["exp_avg_sq"])]
    if not amsgrad:
        for param, mean, square in blocks(*arrays):
            yield param, mean, wide(square)
        return
    for param, mean, square, largest in blocks(*arrays, raw(state["max_exp_avg_sq"])):
        np.maximum(largest, square, out=largest)
        yield param, mean, wide(largest)
    bump(state["max_exp_avg_sq"], STEP)
