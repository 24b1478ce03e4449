"""The bilinear layer's function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.dtype_words import older
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.dispatch.rules import Making
from rushlight.kernels.dispatch import FLOAT32, is_half, summed, summed_in, up
from rushlight.tensor import Tensor

F = "nn.functional"


@op(name="trilinear", refuse="bc", batch=families.trilinear)
def bilinear_op(input1: Array, input2: Array, weight: Array) -> Array:
    """sum over i, j of input1[n, i] * weight[o, i, j] * input2[n, j], output by output.  -> (N, O)"""
    out = np.empty((len(input1), len(weight)), input1.dtype)
    for o, w in enumerate(weight):
        out[:, o] = summed("nj,nj->n", backend.matmul(input1, w), input2)
    return out


@bilinear_op.shape
def _(input1: Array, weight: Array) -> list[shapes.Made]:
    return [shapes.Made((len(input1), len(weight)), input1.dtype)]


@bilinear_op.work
def _(input1: Array, weight: Array) -> int:
    return len(input1) * weight.shape[2] * input1.itemsize


def _bilinear_raw(g: Array, input1: Array, input2: Array, weight: Array, needs: tuple[bool, ...]) -> list[Any]:
    g, x, y, weight = up(g, input1, input2, weight)
    grads: list[Any] = [None, None, None]
    if needs[0]:
        grads[0] = np.zeros((len(g), weight.shape[1]), g.dtype)
    if needs[1]:
        grads[1] = np.zeros((len(g), weight.shape[2]), g.dtype)
    if needs[2]:
        grads[2] = np.empty((g.shape[1], x.shape[1], y.shape[1]), g.dtype)
    for o in range(g.shape[1]):
        w: Any = None if weight is None else weight[o]
        scaled: Any = g[:, o : o + 1] * x if needs[1] or needs[2] else None
        if needs[0]:
            grads[0] += backend.matmul(g[:, o : o + 1] * y, w.T)
        if needs[1]:
            grads[1] += backend.matmul(scaled, w)
        if needs[2]:
            grads[2][o] = backend.matmul(scaled.T, y)
    return grads


def _bytes(
    g: Array, input1: Array | None, input2: Array | None, weight: Array | None, needs: tuple[bool, ...], make: Making
) -> list[Any]:
    """The gradients and the products of one output; of 16 bits in float32, with copies of what they are made of."""
    half, given = is_half(g.dtype), (input1, input2, weight)
    copies = [make.array(x.shape, FLOAT32) for x in (g, *given) if half and x is not None]
    made = [
        None if not need else make.array(shape, FLOAT32) if half else make.gradient(i)
        for i, (need, shape) in enumerate(zip(needs, _shapes(len(g), g.shape[1], *given), strict=True))
    ]
    (rows, one), (_, other) = _shapes(len(g), g.shape[1], *given)[:2]
    scaled = rows * one if needs[1] or needs[2] else 0
    most = max((rows * (one + other)) * needs[0], rows * other * needs[1], one * other * needs[2])
    make.work((scaled + most) * summed_in(g.dtype).itemsize)
    del copies
    return made


def _shapes(rows: int, outputs: int, x: Array | None, y: Array | None, weight: Array | None) -> list[tuple[int, ...]]:
    """Those of the gradients, from what is there of the inputs."""
    one, other = (
        weight.shape[i] if weight is not None else part.shape[1] if part is not None else 0
        for i, part in ((1, x), (2, y))
    )
    return [(rows, one), (rows, other), (outputs, one, other)]


@bilinear_op.grad("input1", "input2", "weight", raw=_bilinear_raw, shapes=_bytes,
                  uses={"input1": "input2 weight", "input2": "input1 weight", "weight": "input1 input2"})  # fmt: skip
def _(g: Tensor, input1: Tensor, input2: Tensor, weight: Tensor, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    return (ops.einsum("no,oij,nj->ni", g, weight, input2) if needs[0] else None,
            ops.einsum("no,oij,ni->nj", g, weight, input1) if needs[1] else None,
            ops.einsum("no,ni,nj->oij", g, input1, input2) if needs[2] else None)  # fmt: skip


def check_sizes(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raise RuntimeError where shapes or dtypes do not fit."""
    shapes = f"input1 {list(input1.shape)}, input2 {list(input2.shape)}, weight {list(weight.shape)}"
    if input1.ndim != input2.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {shapes}")
    if weight.ndim != 3 or input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(f"bilinear(): expected weight (out, {input1.shape[-1]}, {input2.shape[-1]}), got {shapes}")
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != weight.shape[0]):
        raise RuntimeError(f"bilinear(): expected bias ({weight.shape[0]},), got {list(bias.shape)} with {shapes}")
    given = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    kinds = {name: older(x.dtype) for name, x in given.items() if x is not None}
    if len(set(kinds.values())) > 1:
        got = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise RuntimeError(f"bilinear(): All tensors must have the same dtype, got {got}")


@function(ns="")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 weight input2 + bias.  (*, I), (*, J), (O, I, J), (O,) -> (*, O)"""
    check_sizes(input1, input2, weight, bias)
    lead = tuple(input1.shape[:-1])
    n = math.prod(lead)
    out = bilinear_op(input1.reshape(n, input1.shape[-1]), input2.reshape(n, input2.shape[-1]), weight)
    out = out.reshape(*lead, weight.shape[0])
    return out if bias is None else out + bias


NAMESPACES.setdefault(F, {})["bilinear"] = bilinear
