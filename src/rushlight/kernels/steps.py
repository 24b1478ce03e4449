"""Optimizer steps: one pass over parameter, gradient and state, all updated in place, no temporaries.

The arrays of one call have one shape and dtype; a gradient that broadcasts to the parameter's shape is, as in PyTorch,
and what does not fit raises RuntimeError.  Native where all are float32 or float64 and lie in memory in
the same order; otherwise NumPy in blocks.  ``grad`` is never written to.  The formulas and the order of their
operations are those of PyTorch's optimizers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, dense, gapless, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import optim as reference
from rushlight.kernels.reference import rules

SLOTS = 3  # states that native steps have room for, None among them

__all__ = ["SLOTS", "adagrad", "adam", "lion", "rmsprop", "sgd", "step_many"]

# optim.cpp: parameters, gradients and SLOTS states (or None) of each, one after another in an array of objects;
# numbers, float64, a row for all or one for each; parameters, rows.  Returns how many were stepped before one that it
# is not for.
exports(**dict.fromkeys(("adam", "sgd", "adagrad", "rmsprop", *rules.RULES), "aann>n"))


def step_many(name: str, arrays: list[Any], numbers: list[tuple[float, ...]]) -> None:
    """Steps of one kind over many parameters.

    arrays: parameter, gradient and SLOTS states (or None) of each, one after another in one list; numbers: those of each
    parameter's step, in the order of the formula in ``reference``, or one tuple for all. Those of the first one's dtype that
    lie alike in memory step in one native call, which reads the arrays' headers itself; the others one by one.
    """
    width = 2 + SLOTS
    table, done, count = native(arrays[0].dtype), 0, len(arrays) // width
    if all(row is numbers[0] for row in numbers):
        numbers = numbers[:1]
    if table is not None:
        objects, rows = np.fromiter(arrays, object, len(arrays)), np.array(numbers, np.float64)
    while done < count:
        if table is not None:
            of = rows if len(numbers) == 1 else rows[done:]
            done += getattr(table, name)(objects[width * done :], of, count - done, len(of))
        if done < count and arrays[width * done].dtype != arrays[0].dtype:
            return step_many(name, arrays[width * done :], numbers if len(numbers) == 1 else numbers[done:])
        if done < count:
            _one(name, arrays[width * done : width * (done + 1)], numbers[done if len(numbers) > 1 else 0])
            done += 1


def _one(name: str, arrays: list[Array | None], numbers: tuple[Any, ...]) -> None:
    """A step that is not for the native kernel."""
    param, grad, *states = reference.fitted(*arrays)  # type: ignore[arg-type]
    if name in rules.RULES:
        reference.by_rule(rules.RULES[name], (param, grad, *(a for a in states if a is not None)), numbers)
    else:
        getattr(reference, name)(param, grad, *states[: _STATES[name]], *numbers)


_STATES = {"adam": 3, "sgd": 1, "adagrad": 1, "rmsprop": 3}  # that these take, None among them


def _step(name: str, arrays: tuple[Array | None, ...], numbers: tuple[float, ...]) -> None:
    """A step of one parameter."""
    step_many(name, [*arrays, *[None] * (2 + SLOTS - len(arrays))], [numbers])


def adam(
    param: Array,
    grad: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    max_exp_avg_sq: Array | None,
    step: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    maximize: bool = False,
) -> None:
    """A step of Adam (Kingma and Ba 2015), AdamW with ``decoupled``, AMSGrad with ``max_exp_avg_sq``.

    ``step`` counts from 1 and includes this step.
    """
    numbers = adam_numbers(step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize)
    _step("adam", (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq), numbers)


@functools.lru_cache(maxsize=16)  # parameters of one step share them
def adam_numbers(step: float, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
                 maximize: bool) -> tuple[float, ...]:  # fmt: skip
    """What a step of Adam multiplies by, in the order of the kernels: also of those whose state lies in 8 bits."""
    decay, shrink = (0.0, 1.0 - lr * weight_decay) if decoupled else (weight_decay, 1.0)
    step_size, root = lr / (1.0 - beta1**step), math.sqrt(1.0 - beta2**step)
    return step_size, beta1, beta2, root, eps, decay, shrink, -1.0 if maximize else 1.0


def sgd(
    param: Array,
    grad: Array,
    momentum_buf: Array | None,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
    first: bool = False,
) -> None:
    """A step of gradient descent.  With ``first`` the buffer's contents are ignored and set to the gradient."""
    numbers = sgd_numbers(lr, momentum, dampening, weight_decay, nesterov, maximize, first)
    _step("sgd", (param, grad, momentum_buf), numbers)


def sgd_numbers(lr: float, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
                maximize: bool = False, first: bool = False) -> tuple[float, ...]:  # fmt: skip
    """What a step of gradient descent multiplies by, in the order of the kernels."""
    return lr, momentum, dampening, weight_decay, _sign(maximize), int(nesterov), int(first)


def _sign(maximize: bool) -> float:
    return -1.0 if maximize else 1.0


def _same_layout(arrays: tuple[Array, ...]) -> bool:
    """Whether all arrays are aligned and gapless, of one shape and dtype, with elements in the same order."""
    first = arrays[0]
    alike = gapless(first) and all(a.strides == first.strides and a.flags.aligned for a in arrays)
    return (alike or all(dense(a) for a in arrays)) and all(
        a.dtype == first.dtype and a.shape == first.shape for a in arrays
    )


def lion(
    param: Array,
    grad: Array,
    exp_avg: Array,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> None:
    """A step of Lion (Chen et al. 2023, arXiv:2302.06675) with decoupled weight decay."""
    numbers, arrays = lion_numbers(lr, beta1, beta2, weight_decay, maximize), (param, grad, exp_avg)
    table = native(param.dtype)
    if table is not None and _same_layout(arrays):
        table.lion(*arrays, param.size, *numbers)
    else:
        reference.lion(*reference.fitted(*arrays), *numbers)


def lion_numbers(lr: float, beta1: float, beta2: float, weight_decay: float, maximize: bool) -> tuple[float, ...]:
    """What a step of Lion multiplies by, in the order of the kernels."""
    return lr, beta1, beta2, 1.0 - lr * weight_decay, -1.0 if maximize else 1.0


def adagrad(
    param: Array,
    grad: Array,
    state_sum: Array,
    step: float,
    lr: float,
    lr_decay: float = 0.0,
    eps: float = 1e-10,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> None:
    """A step of Adagrad (Duchi et al. 2011); ``step`` counts from 1."""
    numbers = adagrad_numbers(step, lr, lr_decay, eps, weight_decay, maximize)
    _step("adagrad", (param, grad, state_sum), numbers)


@functools.lru_cache(maxsize=16)
def adagrad_numbers(step: float, lr: float, lr_decay: float, eps: float, weight_decay: float,
                    maximize: bool) -> tuple[float, ...]:  # fmt: skip
    """What a step of Adagrad multiplies by, in the order of the kernels."""
    return lr / (1.0 + (step - 1.0) * lr_decay), eps, weight_decay, _sign(maximize)


def rmsprop(
    param: Array,
    grad: Array,
    square_avg: Array,
    momentum_buf: Array | None,
    grad_avg: Array | None,
    lr: float,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    maximize: bool = False,
) -> None:
    """A step of RMSprop; centred with ``grad_avg``, with momentum with ``momentum_buf``."""
    numbers = (lr, alpha, eps, weight_decay, momentum, _sign(maximize))
    _step("rmsprop", (param, grad, square_avg, momentum_buf, grad_avg), numbers)
