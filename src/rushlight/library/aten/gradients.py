"""Operators that are gradients of others: the product of a gradient and the Jacobian, taken of the function itself.

Where a formula is simple it is written out; elsewhere the function is run again and differentiated, which costs its forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.autograd.run import grad as gradients
from rushlight.basics.dtypes import dtype
from rushlight.basics.state import Setting, modes
from rushlight.dispatch.named import Named
from rushlight.library.aten import values, windows
from rushlight.ops.python.aten import handed, public
from rushlight.tensor import Tensor

torch, functional = Named(""), Named("nn.functional")


def pulled(fn: Callable[..., Any], grad: Tensor | Sequence[Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """The gradients by `inputs` of `fn(*inputs)` whose results have the gradients `grad`."""
    create = modes.grad and any(x.requires_grad for x in (*inputs, *([grad] if isinstance(grad, Tensor) else grad)))
    handed.formulas += create
    try:
        with Setting("grad", True):
            # Views, so that no way from one input to another counts.
            leaves = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs]
            made = fn(*leaves)
            return tuple(gradients(made, leaves, grad, create_graph=create))
    finally:
        handed.formulas -= create


def of_first(name: str) -> Callable[..., Any]:
    """`name_backward(grad, input, *options)`: the gradient by the first input, the others and options as they are."""
    fn: Any = values.MEANINGS.get(name) or windows.MEANINGS.get(name) or public(name)

    def backward(grad: Tensor, input: Tensor, *options: Any, **named: Any) -> Tensor:
        return pulled(lambda x: first(fn(x, *options, **named)), grad, input)[0]

    return backward


def first(made: Any) -> Tensor:
    """The first of several results."""
    return made[0] if isinstance(made, tuple) else made


def without_last(name: str) -> Callable[..., Any]:
    """As `of_first`, where the last argument is what forward has kept."""
    inner = of_first(name)
    return lambda grad, input, *options: inner(grad, input, *options[:-1])


def resizing(name: str) -> Callable[..., Any]:
    """The gradient of a resizing by its input, of which the size is given."""

    def backward(grad: Tensor, output_size: Sequence[int], input_size: Sequence[int], *options: Any) -> Tensor:
        like = grad.new_zeros(tuple(input_size))
        return pulled(lambda x: windows.MEANINGS[name](x, output_size, *options), grad, like)[0]

    return backward


def spreading(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a view `fn(x, *options)`: zeros of the input's size, and the gradient in the places of the view."""

    def backward(grad: Tensor, input_sizes: Sequence[int], *options: Any) -> Tensor:
        return pulled(lambda x: fn(x, *options), grad, grad.new_zeros(tuple(input_sizes)))[0]

    return backward


def elu(grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, of: Tensor) -> Tensor:
    """The gradient of elu by its input, of which either it or the result is given."""
    below = (
        input_scale * (of + alpha * scale) if is_result else alpha * scale * input_scale * torch.exp(of * input_scale)
    )
    return grad * torch.where(of <= 0, below, scale)


def leaky_relu(grad: Tensor, of: Tensor, negative_slope: float, self_is_result: bool) -> Tensor:
    """The gradient of leaky relu by its input, of which either it or the result is given: their signs are the same."""
    return torch.where(of > 0, grad, grad * negative_slope)


def softmax(grad: Tensor, output: Tensor, dim: int, input_dtype: dtype | None) -> Tensor:
    """The gradient of softmax by its input, from its result."""
    moved = grad * output
    return moved - output * moved.sum(dim, keepdim=True)


def log_softmax(grad: Tensor, output: Tensor, dim: int, input_dtype: dtype | None) -> Tensor:
    """The gradient of log_softmax by its input, from its result."""
    return grad - output.exp() * grad.sum(dim, keepdim=True)


def threshold(grad: Tensor, of: Tensor, threshold: float) -> Tensor:
    """The gradient where the input is above the threshold, 0 elsewhere."""
    return torch.where(of > threshold, grad, 0)


def masked_scatter(grad: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradient by what is scattered: what lies at the mask, and zeros for what was left over."""
    taken = grad.masked_select(mask)
    size = math.prod(sizes)
    result: Tensor = torch.cat([taken, taken.new_zeros(size - taken.numel())]) if size > taken.numel() else taken[:size]
    return result.reshape(tuple(sizes))


def of_convolution(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: object,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: int | Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    """The gradients by input, weight and bias, None where `output_mask` does not ask for one."""
    wanted = [x for x, asked in zip((input, weight), output_mask, strict=False) if asked]

    def forward(*given: Tensor) -> Any:
        left = list(given)
        x = left.pop(0) if output_mask[0] else input
        w = left.pop(0) if output_mask[1] else weight
        return torch.convolution(x, w, None, stride, padding, dilation, transposed, output_padding, groups)

    found = list(pulled(forward, grad, *wanted)) if wanted else []
    by_bias = grad.sum((0, *range(2, grad.dim()))) if output_mask[2] else None
    return (found.pop(0) if output_mask[0] else None, found.pop(0) if output_mask[1] else None, by_bias)


def asked(
    fn: Callable[..., Any], grad: Tensor, inputs: Sequence[Tensor | None], mask: Sequence[bool]
) -> tuple[Any, ...]:
    """The gradients by those inputs that `mask` asks for, None for others."""
    at = [i for i, (x, wanted) in enumerate(zip(inputs, mask, strict=True)) if wanted and x is not None]

    def forward(*given: Tensor) -> Any:
        every = list(inputs)
        for i, x in zip(at, given, strict=True):
            every[i] = x
        return fn(*every)

    chosen = [x for i, x in enumerate(inputs) if i in at and x is not None]
    found = dict(zip(at, pulled(forward, grad, *chosen), strict=True)) if at else {}
    return tuple(found.get(i) for i in range(len(inputs)))


def statistics(x: Tensor, dims: tuple[int, ...], mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the inverse deviation that forward gave; where a gradient is recorded, made of `x` again: those are constants."""
    if not (modes.grad and x.requires_grad):
        return mean, rstd
    middle = x.mean(dims, True)
    square = ((x - middle) ** 2).mean(dims, True)
    eps = (rstd**-2 - square).detach()
    return middle, (square + eps).rsqrt()


def norm_of_features(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Any,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    """The gradients by input, weight and bias, from the statistics of forward."""
    dims = tuple(range(-len(normalized_shape), 0))
    lead = tuple(range(input.dim() - len(normalized_shape)))
    mean, rstd = statistics(input, dims, mean, rstd)
    normal = (input - mean) * rstd
    g = grad if weight is None else grad * weight
    by_input = rstd * (g - g.mean(dims, True) - normal * (g * normal).mean(dims, True)) if output_mask[0] else None
    by_weight = summed(grad * normal, lead) if output_mask[1] and weight is not None else None
    return by_input, by_weight, summed(grad, lead) if output_mask[2] and bias is not None else None


def summed(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The sum over some dimensions, which may be none."""
    return x.sum(dims) if dims else x


def norm_of_groups(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: int, C: int, HxW: int,
               group: int, output_mask: Sequence[bool]) -> tuple[Any, ...]:  # fmt: skip
    """The gradients by input, weight and bias, from the statistics of forward."""
    x, dy = (t.reshape(N, group, C // group, HxW) for t in (input, grad))
    mean, rstd = statistics(x, (2, 3), *(t.reshape(N, group, 1, 1) for t in (mean, rstd)))
    normal = (x - mean) * rstd
    g = dy if weight is None else dy * weight.reshape(1, group, C // group, 1)
    means = g.mean((2, 3), True), (g * normal).mean((2, 3), True)
    by_input = rstd * (g - means[0] - normal * means[1]) if output_mask[0] else None
    return (
        by_input.reshape(input.shape) if by_input is not None else None,
        (dy * normal).sum((0, 3)).reshape(C) if output_mask[1] else None,
        dy.sum((0, 3)).reshape(C) if output_mask[2] else None,
    )


def norm_of_channels(grad: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
               save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: float, output_mask: Sequence[bool],
               *reserve: Tensor) -> tuple[Any, ...]:  # fmt: skip
    """The gradients by input, weight and bias, from the statistics of forward."""
    along = (1, -1, *([1] * (input.dim() - 2)))
    dims = (0, *range(2, input.dim()))
    mean: Any = save_mean if train else running_mean
    var: Any = running_var
    scale: Any = save_invstd if train else (var + eps).rsqrt()
    mean, scale = mean.reshape(along), scale.reshape(along)
    if train:
        mean, scale = statistics(input, dims, mean, scale)
    normal = (input - mean) * scale
    g = grad if weight is None else grad * weight.reshape(along)
    inner = g - g.mean(dims, True) - normal * (g * normal).mean(dims, True) if train else g
    by_input = inner * scale if output_mask[0] else None
    return by_input, (grad * normal).sum(dims) if output_mask[1] else None, grad.sum(dims) if output_mask[2] else None


def update_batch_norm(grad: Tensor, input: Tensor, weight: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                      save_mean: Tensor | None, save_var: Tensor | None, update: bool, eps: float, output_mask: Sequence[bool],
                      reserve: Tensor) -> tuple[Any, ...]:  # fmt: skip
    """As `norm_of_channels`, its arguments in another order of words."""
    return norm_of_channels(
        grad, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask
    )


def embedding_dense(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The gradient of an embedding by its table."""
    table = grad.new_zeros((num_weights, grad.shape[-1]))
    padding = padding_idx if 0 <= padding_idx < num_weights else None
    return pulled(
        lambda w: functional.embedding(indices, w, padding, scale_grad_by_freq=scale_grad_by_freq), grad, table
    )[0]


def grid_sampler(grad: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool,
                 output_mask: Sequence[bool] = (True, True)) -> tuple[Any, ...]:  # fmt: skip
    """The gradients by input and grid."""
    options = interpolation_mode, padding_mode, align_corners
    return asked(lambda x, at: windows.grid_sampler(x, at, *options), grad, (input, grid), output_mask)


def nll(grad: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
        total_weight: Tensor) -> Tensor:  # fmt: skip
    """The gradient of the negative log likelihood by its input."""
    return pulled(lambda x: values.nll_loss(x, target, weight, reduction, ignore_index), grad, input)[0]


def average_to(dims: int) -> Callable[..., Any]:
    """The gradient of a mean over adaptive windows by its input: there are as many as the gradient has places."""

    def backward(grad: Tensor, input: Tensor) -> Tensor:
        pool = functional.adaptive_avg_pool2d if dims == 2 else functional.adaptive_avg_pool3d
        return pulled(lambda x: pool(x, tuple(grad.shape[-dims:])), grad, input)[0]

    return backward


def maximum_at(dims: int) -> Callable[..., Any]:
    """The gradient of a maximum over windows by its input, added where `indices`, the last argument, say."""

    def backward(grad: Tensor, input: Tensor, *options: Any) -> Tensor:
        lead = input.shape[: input.dim() - dims]
        zeros = grad.new_zeros((*lead, math.prod(input.shape[-dims:])))
        added: Tensor = zeros.scatter_add(-1, options[-1].reshape(*lead, -1), grad.reshape(*lead, -1))
        return added.reshape(input.shape)

    return backward


def rrelu(
    grad: Tensor, of: Tensor, noise: Tensor, lower: float, upper: float, training: bool, self_is_result: bool
) -> Tensor:
    """The gradient of rrelu by its input: by the noise in training, else as of leaky relu of the middle slope."""
    if training and upper - lower > 1e-6:
        return grad * noise
    return leaky_relu(grad, of, (lower + upper) / 2, self_is_result)


def attention(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float,
              is_causal: bool, *, attn_mask: Tensor | None = None, scale: float | None = None) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of attention without dropout by query, key and value."""
    return pulled(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, attn_mask, 0.0, is_causal, scale),
        grad,
        query,
        key,
        value,
    )


def cdist(grad: Tensor, x1: Tensor, x2: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradient of distances by the first points."""
    return pulled(lambda x: torch.cdist(x, x2, p), grad, x1)[0]


def log_sigmoid(grad: Tensor, input: Tensor, buffer: Tensor) -> Tensor:
    """The gradient of log sigmoid by its input."""
    return grad * torch.sigmoid(-input)


BY_FIRST = (  # gradients by the first input of a function that takes the rest as they do
    "gelu_backward glu_backward hardsigmoid_backward hardswish_backward hardtanh_backward logit_backward mish_backward silu_backward "
    "softplus_backward softshrink_backward hardshrink_backward mse_loss_backward huber_loss_backward smooth_l1_loss_backward "
    "soft_margin_loss_backward binary_cross_entropy_backward multi_margin_loss_backward avg_pool2d_backward avg_pool3d_backward "
    "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward "
    "replication_pad2d_backward replication_pad3d_backward"
).split()
RESIZINGS = (
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
    *(f"{start}{n}d" for start in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
)
KEPT = ("multilabel_margin_loss",)  # forward kept the last argument

MEANINGS: dict[str, Callable[..., Any]] = (
    {name: of_first(name.removesuffix("_backward")) for name in BY_FIRST}
    | {f"{name}_backward": resizing(name) for name in RESIZINGS}
    | {f"{name}_backward": without_last(name) for name in KEPT}
    | {
        "_adaptive_avg_pool2d_backward": average_to(2),
        "_adaptive_avg_pool3d_backward": average_to(3),
        "max_pool2d_with_indices_backward": maximum_at(2),
        "max_pool3d_with_indices_backward": maximum_at(3),
        "adaptive_max_pool2d_backward": maximum_at(2),
        "adaptive_max_pool3d_backward": maximum_at(3),
        "fractional_max_pool2d_backward": maximum_at(2),
        "fractional_max_pool3d_backward": maximum_at(3),
        "rrelu_with_noise_backward": rrelu,
        "_scaled_dot_product_flash_attention_for_cpu_backward": attention,
        "elu_backward": elu,
        "leaky_relu_backward": leaky_relu,
        "threshold_backward": threshold,
        "log_sigmoid_backward": log_sigmoid,
        "sigmoid_backward": lambda g, y: g * y.conj() * (1 - y.conj()),
        "tanh_backward": lambda g, y: g * (1 - y.conj() * y.conj()),
        "_softmax_backward_data": softmax,
        "_log_softmax_backward_data": log_softmax,
        "masked_scatter_backward": masked_scatter,
        "convolution_backward": of_convolution,
        "native_layer_norm_backward": norm_of_features,
        "native_group_norm_backward": norm_of_groups,
        "native_batch_norm_backward": norm_of_channels,
        "batch_norm_backward": update_batch_norm,
        "embedding_dense_backward": embedding_dense,
        "grid_sampler_2d_backward": grid_sampler,
        "grid_sampler_3d_backward": grid_sampler,
        "nll_loss_backward": nll,
        "nll_loss2d_backward": nll,
        "_cdist_backward": cdist,
        "_pdist_backward": lambda g, x, p, d: pulled(lambda x: functional.pdist(x, p), g, x)[0],
        "_prelu_kernel_backward": lambda g, x, w: pulled(values.prelu_kernel, g, x, w.expand(x.shape)),
        "native_dropout_backward": lambda g, mask, scale: g * mask * scale,
        "select_backward": spreading(lambda x, dim, index: x.select(dim, index)),
        "slice_backward": spreading(values.slice_of),
        "diagonal_backward": spreading(lambda x, *dims: x.diagonal(*dims)),
        "unfold_backward": spreading(lambda x, *options: x.unfold(*options)),
        "trace_backward": spreading(lambda x: x.trace()),
        "index_select_backward": spreading(lambda x, dim, index: x.index_select(dim, index)),
        "matmul_backward": lambda g, a, b, mask: asked(torch.matmul, g, (a, b), mask),
        "linear_backward": lambda x, g, w, mask: (
            *asked(functional.linear, g, (x, w), mask[:2]),
            summed(g, tuple(range(g.dim() - 1))) if mask[2] else None,
        ),
    }
)
