"""Convolutions: samples become images where the weight is the same for all, and groups of channels where it is not."""

from __future__ import annotations

from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.ops.shape.reshape import permute_op
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import Given, Results, reshaped
from rushlight.transforms.batching.windows import folded, unfolded


def as_channels(c: Given, i: int) -> Tensor:
    """Input `i` (N, C, *) with the channels of all samples, one sample after another: (N, B * C, *)."""
    x, shape = c.full(i), c.shapes[i]
    moved = permute_op(x, (1, 0, *range(2, len(shape) + 1)))
    return reshaped(moved, (shape[0], c.size * shape[1], *shape[2:]))


def from_channels(c: Given, t: Tensor) -> Results:
    """The reverse: (N, B * C, *) -> (B, N, C, *)."""
    n, channels, *rest = t.shape
    apart = reshaped(t, (n, c.size, channels // max(c.size, 1), *rest))
    return permute_op(apart, (1, 0, *range(2, len(rest) + 3)))


@families.windowed.batched
def windowed(c: Given) -> Results:
    """The convolution of images with a weight and a bias."""
    groups = c["groups"]
    if c.batched[1]:
        weight = folded(c, c.values[1], 1)
        bias = None if c.values[2] is None else folded(c, c.full(2), 2)
        if not c.batched[0] and groups == 1:
            return from_channels(c, c.run((c.values[0], weight, bias)))
        return from_channels(c, c.run((as_channels(c, 0), weight, bias), c.changed(groups=groups * c.size)))
    apart = c.batched[2]
    found = unfolded(c, c.run((folded(c, c.full(0), 0), c.values[1], None if apart else c.values[2])))
    if not apart:
        return found
    bias = reshaped(c.values[2], (c.size, 1, *c.shapes[2], *[1] * (len(found.shape) - 3)))
    return c.run((found, bias), (), OPS["add"])


@families.input_gradient.batched
def input_gradient(c: Given) -> Results:
    """The adjoint of convolution in its input."""
    n, channels, *rest = c["shape"]
    if not c.batched[1]:
        return unfolded(
            c, c.run((folded(c, c.values[0], 0), c.values[1]), c.changed(shape=(c.size * n, channels, *rest)))
        )
    statics = c.changed(shape=(n, c.size * channels, *rest), groups=c["groups"] * c.size)
    return from_channels(c, c.run((as_channels(c, 0), folded(c, c.values[1], 1)), statics))


@families.weight_gradient.batched
def weight_gradient(c: Given) -> Tensor:
    """The adjoint of convolution in its weight."""
    out, *rest = c["shape"]
    shape = (c.size * out, *rest)
    if not c.batched[1] and c["groups"] == 1:
        return unfolded(c, c.run((as_channels(c, 0), c.values[1]), c.changed(shape=shape)))
    statics = c.changed(shape=shape, groups=c["groups"] * c.size)
    return unfolded(c, c.run((as_channels(c, 0), as_channels(c, 1)), statics))
