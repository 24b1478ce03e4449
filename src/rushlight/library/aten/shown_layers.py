"""How calls of layers look to `__torch_dispatch__`: convolutions, pools, norms, losses, attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight.dispatch.declare import Op
from rushlight.library.aten.shown import REDUCTIONS, listed, word
from rushlight.ops.python.handing import Call, Shown


def windowed(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A convolution."""
    stride, padding, dilation, groups = statics
    return word(op), (*inputs, *map(listed, (stride, padding, dilation)), False, [0] * len(stride), groups), {}


def transposed(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A transposed convolution, whose result has the shape that is given."""
    shape, stride, padding, dilation, groups = statics
    x, w = inputs
    spans = zip(shape[2:], x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
    more = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for n, m, k, s, p, d in spans]
    return word(op), (x, w, None, *map(listed, (stride, padding, dilation)), True, more, groups), {}


def pooled(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """The largest of each window, and where it is."""
    (kernel, stride, padding, dilation), out = statics
    space = inputs[0].shape[-len(kernel) :]
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True)
    ]
    values: list[Any] = [listed(tuple(each)) for each in (kernel, stride, padding, dilation)] + [
        list(out) != list(sizes)
    ]
    plain: list[Any] = [None, values[0], [0] * len(kernel), [1] * len(kernel), False]
    while len(values) > 1 and values[-1] == plain[len(values) - 1]:
        values.pop()
    return f"max_pool{len(kernel)}d_with_indices", (*inputs, *values), {}


def padded(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Constants around: from the last dimension."""
    pads, value = statics
    flat = [n for pair in reversed(pads) for n in pair]
    while len(flat) > 2 and flat[-2:] == [0, 0]:
        flat = flat[:-2]
    return "constant_pad_nd", (*inputs, flat, value), {}


def columns(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """The windows of an image as columns."""
    kernel, stride, padding, dilation = (listed(tuple(each)) for each in statics[0])
    return "im2col", (*inputs, kernel, dilation, padding, stride), {}


def norm_of_features(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A norm over features, of which PyTorch takes the shape."""
    x, weight, bias = inputs
    k, eps = statics
    return op.name, (x, list(x.shape[x.dim() - k :]), weight, bias, eps), {}


def norm_of_groups(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """native_group_norm."""
    shape = inputs[0].shape
    return "native_group_norm", (*inputs, *shape[:2], math.prod(shape[2:]), *statics), {}


def norm_of_channels(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """native_batch_norm by the batch."""
    return "native_batch_norm", (*inputs, None, None, True, 0.1, *statics), {}


def evaluated(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """native_batch_norm by running statistics."""
    return "native_batch_norm", (*inputs, False, 0.1, *statics), {}


def nll(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """nll_loss, which gives the weight of all targets beside."""
    word, ignored = statics
    name = "nll_loss2d_forward" if inputs[0].dim() > 2 else "nll_loss_forward"
    return name, (*inputs, REDUCTIONS[word], ignored), {}


def attention(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown | None:
    """Attention without dropout and without groups of heads."""
    query, key, value, mask = inputs
    causal, scale, groups, drop = statics
    if groups != 1 or drop is not None or query.dim() != 4:
        return None
    kwargs = {} if mask is None else {"attn_mask": mask}
    if not math.isclose(scale, 1 / math.sqrt(query.shape[-1])):
        kwargs["scale"] = scale
    return "_scaled_dot_product_flash_attention_for_cpu", (query, key, value, *[0.0, True] * causal), kwargs


def variances(running: Call, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of native_batch_norm: variances from the inverses of deviations."""
    out, mean, rstd = given[:3]
    return out, mean, rstd**-2 - running.statics[0]


FOUND: dict[str, Callable[..., tuple[Any, ...]]] = {"native_batch_norm": variances}
