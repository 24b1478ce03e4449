"""Optimizer steps: one pass over parameter, gradient and state, all updated in place, no temporaries.

The arrays of one call have one shape and dtype; a gradient that broadcasts to the parameter's shape is, as in PyTorch,
and what does not fit raises RuntimeError.  Native where all are float32 or float64 and lie in memory in
the same order; otherwise NumPy in blocks.  ``grad`` is never written to.  The formulas and the order of their
operations are those of PyTorch's optimizers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, dense, gapless, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import optim as reference

__all__ = ["adagrad", "adam", "lion", "rmsprop", "sgd", "sgd_many"]

exports(
    # optim.cpp: parameter, gradient, state, elements, numbers
    adam="aaaaan" + "d" * 8,
    sgd="aaan" + "d" * 5 + "ii",
    sgd_many="an"
    + "d" * 5
    + "i"
    + ">n",  # parameters, gradients and buffers in an array of objects, and how many of each
    adagrad="aaan" + "d" * 4,
    rmsprop="aaaaan" + "d" * 6,
)


def _run(name: str, arrays: tuple[Array | None, ...], numbers: tuple[Any, ...]) -> None:
    param = arrays[0]
    assert param is not None
    table = native(param.dtype)
    if table is not None and _same_layout(arrays):
        getattr(table, name)(*arrays, param.size, *numbers)
    else:
        getattr(reference, name)(*reference.fitted(*arrays), *numbers)  # type: ignore[arg-type]


def _same_layout(arrays: tuple[Array | None, ...]) -> bool:
    """Whether all arrays are aligned and gapless, of one shape and dtype, with elements in the same order."""
    first = arrays[0]
    assert first is not None
    if not gapless(first):
        return False
    strides, dtype, shape = first.strides, first.dtype, first.shape
    for a in arrays:
        if a is None or a is first:
            continue
        if a.strides != strides or a.dtype != dtype or a.shape != shape or not a.flags.aligned:
            return _all_c(arrays)
    return True


def _all_c(arrays: tuple[Array | None, ...]) -> bool:
    first = arrays[0]
    assert first is not None
    return all(a is None or (dense(a) and a.dtype == first.dtype and a.shape == first.shape) for a in arrays)


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
    _run("adam", (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq), numbers)


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
    sign = -1.0 if maximize else 1.0
    numbers = (lr, momentum, dampening, weight_decay, sign, int(nesterov), int(first))
    _run("sgd", (param, grad, momentum_buf), numbers)


def sgd_many(triples: list[Any], numbers: tuple[Any, ...]) -> None:
    """Steps of gradient descent with the same numbers, as :func:`sgd` takes them from ``lr`` to ``maximize``.

    triples: parameter, gradient and buffer (or None) of each, one after another in one list. Those of the first one's
    dtype that lie alike in memory step in one native call, which reads the arrays' headers itself; the others one by one.
    """
    table, done = native(triples[0].dtype), 0
    if table is not None:
        objects = np.empty(len(triples), object)
        for i, x in enumerate(triples):
            objects[i] = x
    while done < len(triples):
        if table is not None:
            done += 3 * _sgd_together(table, objects[done:], *numbers)
        if done < len(triples):
            sgd(*triples[done : done + 3], *numbers)
            done += 3


def _sgd_together(table: Any, triples: Array, lr: float, momentum: float, dampening: float, weight_decay: float,
                  nesterov: bool, maximize: bool) -> int:  # fmt: skip
    """Step the triples at the beginning that one native call can take; how many."""
    sign = -1.0 if maximize else 1.0
    steps: int = table.sgd_many(triples, len(triples) // 3, lr, momentum, dampening, weight_decay, sign, nesterov)
    return steps


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
    _run("lion", (param, grad, exp_avg), lion_numbers(lr, beta1, beta2, weight_decay, maximize))


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
    now = lr / (1.0 + (step - 1.0) * lr_decay)
    _run("adagrad", (param, grad, state_sum), (now, eps, weight_decay, -1.0 if maximize else 1.0))


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
    numbers = (lr, alpha, eps, weight_decay, momentum, -1.0 if maximize else 1.0)
    _run("rmsprop", (param, grad, square_avg, momentum_buf, grad_avg), numbers)
