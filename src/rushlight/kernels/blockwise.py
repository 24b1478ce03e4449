"""Optimizer steps whose state lies in 8 bits (Dettmers et al., 2022, arXiv:2110.02861).

A state is an array of codes, uint8 in the parameter's shape, and a scale for every 256 of them in the order in which they lie in
memory, float32: code c of block b stands for ``dynamic_map(signed)[c] * scales[b]``.  A step decodes a block, makes the
step in the parameter's precision and encodes what the state has become, in one pass; nothing larger than a block is
made.  Other layouts and 16-bit parameters go through float32 copies of 65,536 elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, gapless, is_half, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import blockwise as reference
from rushlight.kernels.reference.blockwise import BLOCK, decode, dynamic_map, encode
from rushlight.kernels.reference.optim import BLOCK as AT_ONCE
from rushlight.kernels.reference.optim import fitted
from rushlight.kernels.steps import adam_numbers, lion_numbers

__all__ = [
    "AT_ONCE",
    "BLOCK",
    "adam_in_blocks",
    "decode",
    "dynamic_map",
    "encode",
    "lion_in_blocks",
    "sgd_in_blocks",
]

exports(
    # blockwise.cpp: parameter, gradient, codes, their scales, elements, numbers
    adam_in_blocks="aaaaaan" + "d" * 8,
    sgd_in_blocks="aaaan" + "d" * 5 + "ii",
    lion_in_blocks="aaaan" + "d" * 5,
    lion="aaan" + "d" * 5,
)


def _run(
    name: str, param: Array, grad: Array, codes: tuple[Array, ...], scales: tuple[Array, ...], numbers: Any
) -> None:
    param, grad, *found = fitted(param, grad, *codes)
    for scale in scales:
        if scale.shape != (-(-param.size // BLOCK),):
            raise RuntimeError(
                f"{name}: expected {-(-param.size // BLOCK)} scales, one for each {BLOCK} of {param.size} codes, got shape "
                f"{list(scale.shape)}: does the state belong to another parameter? Clear the optimizer's state of it."
            )
    arrays = (param, grad, *found)
    table = native(param.dtype)
    alike = grad.strides == param.strides and all(_same_order(param, a) for a in found)
    if table is not None and gapless(param) and alike and grad.dtype == param.dtype and grad.flags.aligned:
        getattr(table, name)(*arrays, *scales, param.size, *numbers)
    else:
        _in_copies(name, arrays, scales, numbers)


def _same_order(param: Array, codes: Array) -> bool:
    """Whether codes lie as the elements of a gapless parameter do."""
    return codes.flags.aligned and tuple(s * param.itemsize for s in codes.strides) == param.strides


def _in_copies(name: str, arrays: tuple[Array, ...], scales: tuple[Array, ...], numbers: Any) -> None:
    """The step on copies of some elements at a time, in the order in which the codes lie."""
    strides = arrays[2].strides
    axes = sorted(range(arrays[2].ndim), key=lambda axis: -abs(strides[axis]))
    flat = [_flat(a.transpose(axes)) for a in arrays]
    dtype = np.dtype(np.float32) if is_half(arrays[0].dtype) else arrays[0].dtype
    table = native(dtype)
    for start in range(0, arrays[0].size, AT_ONCE):
        at = slice(start, start + AT_ONCE)
        param, grad, *codes = (np.array(a[at]) for a in flat)
        parts = [s[start // BLOCK : (start + AT_ONCE) // BLOCK] for s in scales]
        wide = param.astype(dtype, copy=False), grad.astype(dtype, copy=False)
        if table is None:
            getattr(reference, name)(*wide, *codes, *parts, *numbers)
        else:
            getattr(table, name)(*wide, *codes, *parts, param.size, *numbers)
        for to, new, like in zip((flat[0], *flat[2:]), (wide[0], *codes), (arrays[0], *arrays[2:]), strict=True):
            to[at] = new.astype(like.dtype, copy=False)


def _flat(array: Array) -> Any:
    """The elements in C order, to be read and written."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def adam_in_blocks(
    param: Array,
    grad: Array,
    codes: tuple[Array, Array],
    scales: tuple[Array, Array],
    step: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    maximize: bool = False,
) -> None:
    """A step of Adam, AdamW with ``decoupled``; codes, scales: of the mean of gradients and of that of their squares.

    ``step`` counts from 1.  A mean square that is not 0 is never encoded as 0, since the step is divided by its root.
    """
    numbers = adam_numbers(step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize)
    _run("adam_in_blocks", param, grad, codes, scales, numbers)


def sgd_in_blocks(
    param: Array,
    grad: Array,
    codes: Array,
    scales: Array,
    lr: float,
    momentum: float,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
    first: bool = False,
) -> None:
    """A step of gradient descent with momentum.  With ``first`` the codes are ignored and become the gradient's."""
    numbers = (lr, momentum, dampening, weight_decay, -1.0 if maximize else 1.0, int(nesterov), int(first))
    _run("sgd_in_blocks", param, grad, (codes,), (scales,), numbers)


def lion_in_blocks(
    param: Array,
    grad: Array,
    codes: Array,
    scales: Array,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> None:
    """A step of Lion, as `steps.lion` makes it."""
    numbers = lion_numbers(lr, beta1, beta2, weight_decay, maximize)
    _run("lion_in_blocks", param, grad, (codes,), (scales,), numbers)
