"""Gradients by PyTorch's own operators of them, around results of `__torch_dispatch__`.

Where an operator here keeps beside its result what no class can give, or its formula looks at values, or PyTorch has one
operator for the gradient, as the declarations of operators say (`aten_gradient`): by a line or the name of a rule.  Each rule
makes of a call a function (gradient, mask of the inputs that want one, node) -> gradients of the inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from rushlight.basics.state import modes, special
from rushlight.dispatch.declare import OPS, Op
from rushlight.dispatch.named import Named
from rushlight.engine.node import Node
from rushlight.library.aten.shown import LAST, REDUCTIONS, Declared, by_name, listed, parts, removed
from rushlight.ops.python.classes import leaves
from rushlight.ops.python.handing import Call, named
from rushlight.tensor import Tensor

torch = Named("")
Gradients = Callable[[Any, int, Any], Any]


def handed(name: str, *args: object, **kwargs: object) -> Any:
    """An operator of gradients: one call where it is not recorded, else what it consists of."""
    if not modes.grad and special.classes.owns(tuple(leaves((args, kwargs)))):
        return special.classes.called(name, *args, **kwargs)
    return named(name)(*args, **kwargs)


class Saved:
    """An input that is kept: as it was, or a RuntimeError where it was changed in place since."""

    def __init__(self, tensor: object):
        self.tensor = tensor
        self.version = tensor._version if isinstance(tensor, Tensor) and not tensor._inference else 0

    def __call__(self) -> Any:
        tensor = self.tensor
        if isinstance(tensor, Tensor) and not tensor._inference and tensor._version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor of shape "
                f"{list(tensor.shape)} is at version {tensor._version}; expected version {self.version} instead. clone() it before "
                "it is changed, or use the form of the change that is not in place"
            )
        return tensor


class Output:
    """A result that is kept: what the class gives for `detach`, so that it does not lead back to its node."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor.detach()

    def __call__(self, node: Node) -> Tensor:
        found = self.tensor.detach()
        found._edge = node
        return found


def by_line(op: Op, line: str) -> Callable[[Call], Callable[[Tensor, Node], Any]]:
    """What a line of a declaration says: the gradient of one input, from that of the result and the node.

    The line names the gradient `g`, the result `out`, inputs, statics, and the dtype of the first input `input_dtype`.
    """
    declared, wants = Declared(line), set(re.findall(r"\w+", line))

    def rule(running: Call) -> Callable[[Tensor, Node], Any]:
        given = by_name(op, (None,) * len(op.tensors), running.statics) | {"input_dtype": running.inputs[0].dtype}
        saved = {name: Saved(x) for name, x in zip(op.tensors, running.inputs, strict=True) if name in wants}
        out = Output(running.given[0]) if "out" in wants else None

        def backward(g: Tensor, node: Node) -> Any:
            result = {} if out is None else {"out": out(node)}
            name, args, kwargs = declared(given | result | {"g": g} | {name: x() for name, x in saved.items()})
            return handed(name, *args, **kwargs)

        return backward

    return rule


def by_lines(op: Op, lines: Mapping[str, str]) -> Callable[[Call], Gradients]:
    """The gradients of the inputs that have a line."""
    rules = {op.tensors.index(name): by_line(op, line) for name, line in lines.items()}

    def rule(running: Call) -> Gradients:
        parts = {at: made(running) for at, made in rules.items()}

        def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
            asked = [i in parts and wanted >> i & 1 and node.edges[i] is not None for i in range(len(op.tensors))]
            return [parts[i](g, node) if asks else None for i, asks in enumerate(asked)]

        return backward

    return rule


def log_sigmoid(running: Call) -> Gradients | None:
    """log_sigmoid, with what its forward kept."""
    if len(running.given) < 2:
        return None
    x, buffer = Saved(running.inputs[0]), running.given[1]
    return lambda g, wanted, node: [handed("log_sigmoid_backward", g, x(), buffer)]


# Sums and their like ----------------------------------------------------------------------------------------------------


def spread(g: Tensor, shape: list[int], dims: Any, keepdim: bool) -> Tensor:
    """A gradient of what was reduced along dimensions, in the shape before."""
    for dim in () if keepdim or not shape else sorted(d % len(shape) for d in dims or ()):
        g = g.unsqueeze(dim)
    return g.expand(shape)


def reduced(running: Call) -> tuple[list[int], Any, bool]:
    """The shape before, the dimensions and whether they are kept, of a reduction."""
    dim, keepdim = running.statics[:2]
    return list(running.inputs[0].shape), (dim,) if isinstance(dim, int) else dim, keepdim


def count(shape: list[int], dims: Any) -> int:
    """How many elements come together; what has no dimensions has one."""
    return math.prod([shape[d] for d in dims] if dims and shape else shape)


def total(running: Call) -> Gradients:
    """A sum: its gradient everywhere."""
    shape, dims, keepdim = reduced(running)
    return lambda g, wanted, node: [spread(g, shape, dims, keepdim)]


def mean(running: Call) -> Gradients:
    """A mean: its share of it everywhere."""
    shape, dims, keepdim = reduced(running)
    many = count(shape, dims)
    return lambda g, wanted, node: [spread(g, shape, dims, keepdim) / many]


def nansum(running: Call) -> Gradients:
    """A sum of what is a number."""
    shape, dims, keepdim = reduced(running)
    x = Saved(running.inputs[0])
    return lambda g, wanted, node: [spread(g, shape, dims, keepdim) * torch.isnan(x()).logical_not()]


def extreme(running: Call) -> Gradients:
    """The largest or smallest: shared by all that are it."""
    shape, dims, keepdim = reduced(running)
    x, out = Saved(running.inputs[0]), Output(running.given[0])
    every = tuple(range(len(shape))) if not dims else dims

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        mask = x() == spread(out(node), shape, dims, keepdim)
        return [spread(g, shape, dims, keepdim) * mask / mask.sum(every, True)]

    return backward


def larger_of(loses: str) -> Callable[[Call], Gradients]:
    """The larger or smaller of two: half for each where they are equal.  loses: what the first is where the second is it."""

    def rule(running: Call) -> Gradients:
        x, y = Saved(running.inputs[0]), Saved(running.inputs[1])
        wins = "gt" if loses == "lt" else "lt"

        def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
            shared = torch.where(x() == y(), g / 2, g)
            lost = [getattr(torch, word)(x(), y()) for word in (loses, wins)]
            return [shared.masked_fill(each, 0) for each in lost]

        return backward

    return rule


larger, smaller = larger_of("lt"), larger_of("gt")


def variance(running: Call) -> Gradients:
    """A variance."""
    dim, correction, keepdim = running.statics
    x, shape = Saved(running.inputs[0]), list(running.inputs[0].shape)
    return lambda g, wanted, node: [of_variance(g, x(), shape, dim, correction, keepdim)]


def of_variance(g: Tensor, x: Tensor, shape: list[int], dim: Any, correction: float, keepdim: bool) -> Tensor:
    """The gradient of a variance."""
    free = count(shape, dim) - correction
    center = x.mean() if dim is None else x.mean(dim, True)
    return spread(g, shape, dim, keepdim) * (2.0 / free if free else math.nan) * (x - center)


def deviation(running: Call) -> Gradients:
    """A standard deviation: 0 where it is 0."""
    dim, correction, keepdim = running.statics
    x, shape, out = Saved(running.inputs[0]), list(running.inputs[0].shape), Output(running.given[0])

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        std = out(node)
        slope = (g / (std * 2)).masked_fill(std == 0, 0)
        return [of_variance(slope, x(), shape, dim, correction, keepdim)]

    return backward


def norm(running: Call) -> Gradients | None:
    """The norm of squares: 0 where it is 0; the largest and the smallest size: shared by all that have it."""
    p, dim, keepdim = running.statics
    if p != 2 and not math.isinf(p):
        return None
    x, shape, out = Saved(running.inputs[0]), list(running.inputs[0].shape), Output(running.given[0])
    if math.isinf(p):
        every = tuple(range(len(shape))) if not dim else dim

        def shared(g: Tensor, wanted: int, node: Node) -> list[Any]:
            mask = x().abs() == spread(out(node), shape, dim, keepdim)
            return [spread(g, shape, dim, keepdim) * torch.sgn(x()) * (mask / mask.sum(every, True))]

        return shared

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        whole = spread(out(node), shape, dim, keepdim)
        return [spread(g, shape, dim, keepdim) * (x() / whole).masked_fill(whole == 0, 0)]

    return backward


def logsumexp(running: Call) -> Gradients:
    """The share that each element has in the sum."""
    shape, dims, keepdim = reduced(running)
    x, out = Saved(running.inputs[0]), Output(running.given[0])
    return lambda g, wanted, node: [
        spread(g, shape, dims, keepdim) * torch.conj((x() - spread(out(node), shape, dims, keepdim)).exp())
    ]


def product(running: Call) -> Gradients:
    """A product: the products of the others, which may be 0."""
    dim, keepdim = running.statics
    x, shape = Saved(running.inputs[0]), list(running.inputs[0].shape)

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        given = x()
        if not shape or 0 in shape:
            return [g if not shape else torch.zeros_like(given)]
        one = torch.ones_like(given.narrow(dim, 0, 1))
        before = torch.cat([one, given.narrow(dim, 0, shape[dim] - 1)], dim).cumprod(dim)
        after = torch.cat([one, given.flip(dim).narrow(dim, 0, shape[dim] - 1)], dim).cumprod(dim).flip(dim)
        return [spread(g, shape, (dim,), keepdim) * torch.conj(before * after)]

    return backward


def without_values(running: Call) -> bool:
    """Whether the first input holds nothing that can be looked at: else the formula of the operator is quicker."""
    return bool(getattr(running.inputs[0]._array, "unread", False))


def running_product(running: Call) -> Gradients | None:
    """Products so far: those of the others, which may be 0, from each element on."""
    dim, reverse = running.statics
    if reverse or not without_values(running):
        return None
    x, shape = Saved(running.inputs[0]), list(running.inputs[0].shape)

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        given = x()
        if not shape or 0 in shape:
            return [g]
        found, n = [], shape[dim]
        for k in range(n):
            one = torch.ones_like(given.narrow(dim, k, 1))
            others = torch.cat([given.narrow(dim, 0, k), one, given.narrow(dim, k + 1, n - k - 1)], dim).cumprod(dim)
            found.append((g * torch.conj(others)).narrow(dim, k, n - k).sum(dim, True))
        return [torch.cat(found, dim)]

    return backward


def running_logsumexp(running: Call) -> Gradients | None:
    """Logarithms of sums so far: gradients of either sign are added up as logarithms, from the end."""
    (dim,) = running.statics
    if not running.inputs[0].dtype.is_floating_point or not without_values(running):
        return None
    x, out = Saved(running.inputs[0]), Output(running.given[0])

    def finite(t: Tensor) -> Any:  # what is -inf is of no element that has a gradient
        return t.masked_fill(t == -math.inf, 0)

    def part(g: Tensor, node: Node) -> Any:
        logs = g.masked_fill(g <= 0, 1).log().masked_fill(g <= 0, -math.inf) - finite(out(node))
        return (logs.flip(dim).logcumsumexp(dim).flip(dim) + finite(x())).exp()

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        if not g.dim():
            return [g]
        return [(part(g, node) - part(-g, node)).masked_fill(x() == -math.inf, 0)]

    return backward


def scattered(running: Call) -> Gradients | None:
    """Means and extremes of what is scattered to one place, which share."""
    dim, word, include_self = running.statics
    index, source = running.inputs[1], running.inputs[2]
    if word not in ("mean", "amax", "amin") or source.shape != index.shape or not without_values(running):
        return None
    x, src, out = Saved(running.inputs[0]), Saved(source), Output(running.given[0])

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        if word == "mean":
            own, theirs = torch.ones_like(g), torch.ones_like(src())
        else:
            own = (x() == out(node)).to(g.dtype)
            theirs = (src() == out(node).gather(dim, index)).to(g.dtype)
        several = (own if include_self else torch.zeros_like(g)).scatter_add(dim, index, theirs)
        each = g / torch.clamp_min(several, 1)
        to_input = each * own if include_self else g.scatter(dim, index, 0)
        return [to_input, None, each.gather(dim, index) * theirs]

    return backward


# Parts ------------------------------------------------------------------------------------------------------------------


def part(running: Call) -> Gradients | None:
    """A part along one dimension."""
    shape = list(running.inputs[0].shape)
    found = parts(running.statics[0], len(shape))
    if len(found) != 1:
        return None
    dim, index = found[0]
    if index is None:
        return lambda g, wanted, node: [g.squeeze(dim)]
    if isinstance(index, int):
        return lambda g, wanted, node: [handed("select_backward", g, shape, dim, index)]
    bounds = (0 if index.start is None else index.start, LAST if index.stop is None else index.stop)
    return lambda g, wanted, node: [handed("slice_backward", g, shape, dim, *bounds, index.step or 1)]


def with_one(running: Call) -> Gradients:
    """unsqueeze."""
    before, after = tuple(running.inputs[0].shape), tuple(running.statics[0])
    dims = removed(after, before)
    return lambda g, wanted, node: [g.squeeze(dims[-1] if len(dims) == 1 else tuple(dims))]


def transposed(running: Call) -> Gradients:
    """A transpose."""
    if running.overload is named("t"):
        return lambda g, wanted, node: [g.t()]
    first, second = running.statics
    return lambda g, wanted, node: [g.transpose(first, second)]


def by_columns(x: Tensor) -> bool:
    """Whether a matrix lies in memory by columns, so that its gradient is to."""
    return x.dim() == 2 and x.stride(0) == 1 and x.stride(1) == x.shape[0]


def of_products(running: Call) -> Gradients | None:
    """A product of matrices: each gradient laid out as its matrix."""
    if running.inputs[0].dim() != 2 or any(x.dtype.is_complex for x in running.inputs):
        return None
    left, right = (Saved(x) for x in running.inputs)

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        asks = [wanted >> i & 1 and node.edges[i] is not None for i in range(2)]
        return factors(g, left(), right(), asks, 1)

    return backward


def factors(g: Tensor, left: Tensor, right: Tensor, asks: list[Any], scale: complex) -> list[Any]:
    """The gradients of both factors, times a number."""
    found: list[Any] = [None, None]
    if asks[1]:
        found[1] = g.t().mm(left).t() if by_columns(right) else left.t().mm(g)
    if asks[0]:
        found[0] = right.mm(g.t()).t() if by_columns(left) else g.mm(right.t())
    return found if scale == 1 else [x if x is None else x * scale for x in found]


def added_product(running: Call) -> Gradients | None:
    """A product of matrices added to something that may be broadcast."""
    beta, alpha = running.statics
    if running.inputs[1].dim() != 2 or any(x.dtype.is_complex for x in running.inputs):
        return None
    left, right = (Saved(x) for x in running.inputs[1:])

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        asks = [wanted >> i & 1 and node.edges[i] is not None for i in range(3)]
        first, second = factors(g, left(), right(), asks[1:], alpha)
        return [(g if beta == 1 else g * beta) if asks[0] else None, first, second]

    return backward


# Layers -----------------------------------------------------------------------------------------------------------------


def windowed(running: Call) -> Gradients:
    """A convolution, or a transposed one."""
    x, w = Saved(running.inputs[0]), Saved(running.inputs[1])
    bias = running.args[2]
    sizes = None if bias is None else list(bias.shape)
    options, count = running.args[3:], len(running.inputs)

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        mask = [bool(wanted >> i & 1 and node.edges[i] is not None) if i < count else False for i in range(3)]
        found = handed("convolution_backward", g, x(), w(), sizes, *options, mask)
        return list(found)[:count]

    return backward


def pool(running: Call) -> Gradients | None:
    """The largest of each window: at the indices."""
    if len(running.given) < 2:
        return None
    (kernel, stride, padding, dilation), _ = running.statics
    x, indices = Saved(running.inputs[0]), running.given[1]
    name = f"max_pool{len(kernel)}d_with_indices_backward"
    ceil = len(running.args) > 5 and running.args[5]
    options = [listed(tuple(each)) for each in (kernel, stride, padding, dilation)]
    return lambda g, wanted, node: [handed(name, g, x(), *options, ceil, indices)]


def norms(name: str, middle: Callable[[Call], tuple[list[Any], list[Any]]]) -> Callable[[Call], Gradients | None]:
    """A norm with weights: middle gives the arguments before and after those statistics that the forward gave."""

    def rule(running: Call) -> Gradients | None:
        if len(running.given) < 3:
            return None
        x, weight, bias = (Saved(each) for each in running.inputs[:3])
        mean, rstd = running.given[1:3]
        before, after = middle(running)

        def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
            mask = [bool(wanted >> i & 1 and node.edges[i] is not None) for i in range(3)]
            return list(handed(name, g, x(), *arranged(name, weight(), bias(), mean, rstd, before, after), mask))

        return backward

    return rule


def arranged(name: str, weight: object, bias: object, mean: object, rstd: object, before: list[Any],
             after: list[Any]) -> list[Any]:  # fmt: skip
    """The arguments of the gradient of a norm, in the order that it has them."""
    if name == "native_layer_norm_backward":
        return [*before, mean, rstd, weight, bias, *after]
    return [*before, mean, rstd, weight, *after]


features = norms("native_layer_norm_backward", lambda c: ([c.args[1]], []))
groups = norms("native_group_norm_backward", lambda c: ([], list(c.args[3:7])))


def nll(running: Call) -> Gradients | None:
    """The loss of logarithms of probabilities."""
    if len(running.given) < 2:
        return None
    x, (target, weight) = Saved(running.inputs[0]), running.inputs[1:]
    word, ignored = running.statics
    name = "nll_loss2d_backward" if running.inputs[0].dim() > 2 else "nll_loss_backward"
    weights = running.given[1]
    return lambda g, wanted, node: [
        handed(name, g, x(), target, weight, REDUCTIONS[word], ignored, weights), None, None
    ]  # fmt: skip


def embedding(running: Call) -> Gradients | None:
    """Rows that were taken."""
    padding, by_freq, sparse = running.statics
    if sparse:
        return None
    indices, count = running.inputs[1], running.inputs[0].shape[0]
    return lambda g, wanted, node: [handed("embedding_dense_backward", g, indices, count, padding, by_freq), None]


def attention(running: Call) -> Gradients | None:
    """Attention, with the logarithms of sums that the forward gave."""
    query, key, value, mask = running.inputs
    causal, _, groups, drop = running.statics
    if groups != 1 or drop is not None or len(running.given) < 2 or (mask is not None and mask.requires_grad):
        return None
    saved, out, sums = [Saved(x) for x in (query, key, value)], Output(running.given[0]), running.given[1]
    kwargs = {k: v for k, v in (("attn_mask", mask), ("scale", running.kwargs.get("scale"))) if v is not None}

    def backward(g: Tensor, wanted: int, node: Node) -> list[Any]:
        name = "_scaled_dot_product_flash_attention_for_cpu_backward"
        found = handed(name, g, *(x() for x in saved), out(node), sums, 0.0, causal, **kwargs)
        return [*found, None]

    return backward


def rules() -> dict[str, Callable[[Call], Gradients | None]]:
    """By the names of operators, what their declarations say of their gradients."""
    return {name: rule_of(op) for name, op in OPS.items() if op.aten_gradient}


def rule_of(op: Op) -> Callable[[Call], Gradients | None]:
    """What the declaration of an operator says of its gradients: one of the rules above, or lines."""
    said = op.aten_gradient
    if isinstance(said, str) and "(" not in said:
        return globals()[said]
    return by_lines(op, {op.tensors[0]: said} if isinstance(said, str) else said)
