"""What PyTorch computes by several operators, above the graph, where here is one, for those who are handed operators.  And what formulas here keep
beside results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight.basics.state import Setting, modes
from rushlight.dispatch.declare import OPS
from rushlight.dispatch.formats import contiguous_format, viewable
from rushlight.dispatch.named import Named
from rushlight.library.aten.shown import parts
from rushlight.ops.attention.attention import probabilities, repeated
from rushlight.ops.python.handing import Call
from rushlight.tensor import Tensor, wrap

torch, functional = Named(""), Named("nn.functional")


def parted(name: str) -> Callable[..., Any]:
    """A part along several dimensions: one after the other."""

    def taken(input: Tensor, index: tuple[Any, ...]) -> Any:
        found = parts(index, input.dim())
        if len(found) < 2:
            return NotImplemented
        for dim, part in found:
            input = OPS["select" if isinstance(part, int) else "slice"].call(
                input, (*[slice(None)] * dim, part, Ellipsis)
            )
        return input

    return taken


def shaped(input: Tensor, shape: tuple[int, ...]) -> Any:
    """A shape that strides do not allow: of a copy."""
    if viewable(input._held, tuple(shape)):
        return NotImplemented
    return torch.reshape(input.clone(memory_format=contiguous_format), shape)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A product with the transpose, and the bias added."""
    if input.dim() == 1:
        found = torch.mv(weight, input)
        return found if bias is None else found + bias
    rows = input
    if input.dim() > 2:
        rows = input.reshape(-1, input.shape[-1])
    turned = weight.t()
    found = torch.mm(rows, turned) if bias is None else torch.addmm(bias, rows, turned)
    return found if rows is input else found.reshape(*input.shape[:-1], weight.shape[0])


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignored: int, smoothing: float
) -> Tensor:
    """The loss of logarithms of softmax, and its mean over classes beside where it is smoothed."""
    at = 1 if input.dim() > 1 else 0
    logs = torch.log_softmax(input, at)
    loss = functional.nll_loss(logs, target, weight, reduction=reduction, ignore_index=ignored)
    if not smoothing:
        return loss
    shape = [1] * logs.dim()
    shape[at] = -1
    even = -(logs if weight is None else logs * weight.reshape(shape)).sum(at)
    out = target == ignored
    even = even.masked_fill(out, 0.0)
    if reduction == "sum":
        even = even.sum()
    elif reduction == "mean":
        count = (~out).sum() if weight is None else (weight[target.masked_fill(out, 0)].masked_fill(out, 0.0)).sum()
        even = even.sum() / count
    share = smoothing / input.shape[at]
    return loss * (1 - smoothing) + even * share


def l1_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """The mean, or sum, of distances."""
    return reduced((input - target).abs(), reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """The divergence."""
    if log_target:
        return reduced(torch.exp(target) * (target - input), reduction)
    return reduced(torch.xlogy(target, target) - target * input, reduction)


def reduced(x: Tensor, word: str) -> Tensor:
    """Losses as they are, their sum, or their mean."""
    return x if word == "none" else x.sum() if word == "sum" else x.mean()


def rms_norm(input: Tensor, weight: Tensor | None, k: int, eps: float) -> Tensor:
    """Divided by the root of the mean of squares: of halves in float32, as squares overflow."""
    dims = tuple(range(input.dim() - k, input.dim()))
    wide = input.float() if input.element_size() == 2 else input
    found = wide * torch.rsqrt(wide.pow(2).mean(dims, True) + eps)
    found = found if weight is None else found * weight
    return found if wide is input else found.to(input.dtype)


def dropped(input: Tensor, p: float, order: object, state: object) -> Tensor:
    """A product, which modes see, with numbers that are drawn: 0, or 1 / (1 - p)."""
    with Setting("levels", tuple(level for level in modes.levels if not hasattr(level, "told"))):
        drawn = wrap(torch.ones(tuple(input.shape), dtype=input.dtype)._array)
        kept = OPS["native_dropout"].call(drawn, p, order, state)
    return input * kept


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    groups: int,
    drop: object,
) -> Any:
    """Products around a softmax, where PyTorch has no operator for the whole: but for four dimensions and a mask without gradient."""
    learned = modes.grad and mask is not None and mask.requires_grad
    if drop is not None or (query.dim() == 4 and groups == 1 and not learned):
        return NotImplemented
    return torch.matmul(probabilities(query, repeated(key, groups), mask, causal, scale), repeated(value, groups))


def both(first: str, second: str) -> Callable[..., Any]:
    """Two results of one operator, each by its own where gradients are wanted."""

    def apart(input: Tensor, dim: object, *options: object) -> Any:
        if not (modes.grad and input.requires_grad):
            return NotImplemented
        keepdim = options[-1]
        correction = {} if len(options) == 1 else {"correction": options[0]}
        mean: dict[str, Any] = {"dim": dim, "keepdim": keepdim}
        if first == "amin" and dim is None:
            mean = {"keepdim": keepdim}
        return (
            getattr(torch, first)(input, **mean, **correction),
            getattr(torch, second)(input, **mean),
        )

    return apart


def summed(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """The sum over what was broadcast from `size`."""
    lead = input.dim() - len(size)
    dims = tuple(i for i in range(input.dim()) if i < lead or (size[i - lead] == 1 and input.shape[i] != 1))
    found = input.sum(dims, True) if dims else input
    return found.view(tuple(size)) if lead else found


COMPOSED: dict[str, Callable[..., Any]] = {
    "slice": parted("slice"),
    "select": parted("select"),
    "view": shaped,
    "linear": linear,
    "cross_entropy": cross_entropy,
    "l1_loss": l1_loss,
    "kl_div": kl_div,
    "fused_rms_norm": rms_norm,
    "scaled_dot_product_attention": attention,
    "native_dropout": dropped,
    **{name: both(*name.split("_")) for name in ("var_mean", "std_mean")},
    "aminmax": both("amin", "amax"),
    "sum_to": summed,
    "square": lambda x: x.pow(2),
    "rdiv": lambda x, number: NotImplemented if isinstance(number, Tensor) else torch.reciprocal(x) * number,
    "softsign": lambda x: x / (x.abs() + 1),
    "tanhshrink": lambda x: x - x.tanh(),
    "isfinite": lambda x: (x == x) * (x.abs() != math.inf) if x.is_floating_point() else NotImplemented,
}


# What formulas here keep beside results --------------------------------------------------------------------------------


def between(running: Call) -> tuple[Any, ...]:
    """Of clamp: where the input lies between the bounds."""
    x, (low, high) = running.inputs[0], running.statics
    if low is None or high is None:
        return (x <= high if low is None else x >= low,)
    return (torch.logical_and(x >= low, x <= high),)


def between_tensors(running: Call) -> tuple[Any, ...]:
    """Of clamp between tensors: who gets the gradient."""
    x, low, high = running.inputs
    below = None if low is None else x < low
    above = None if high is None else x > high
    if below is None or above is None:
        return (torch.where(below, 0, 1) if above is None else torch.where(above, 2, 1),)
    crossed = high < low
    return (torch.where(above | crossed, 2, torch.where(below, 0, 1)),)


AUXILIARY: dict[str, Callable[[Call], tuple[Any, ...]]] = {
    "clamp": between, "clamp_tensor": between_tensors,
    "fmax": lambda c: (torch.logical_or(c.inputs[0] >= c.inputs[1], torch.isnan(c.inputs[1])),),
    "fmin": lambda c: (torch.logical_or(c.inputs[0] <= c.inputs[1], torch.isnan(c.inputs[1])),),
    "nan_to_num": lambda c: (torch.isfinite(c.inputs[0]),),
    "threshold": lambda c: (c.inputs[0] > c.statics[0],),
}  # fmt: skip
