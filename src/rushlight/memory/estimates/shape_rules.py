"""What operators make, from shapes alone: results, what they keep for the backward, and kernels' working memory.

A rule's parameter names are its request, as a formula's are: inputs (arrays) and statics of the operator.  It returns
the results and auxiliary results in the operator's order, each a `Made`, or an array that is a view of an input.
An operator without a rule runs for real on zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rushlight.backends import blas
from rushlight.dispatch.compute import HALVES
from rushlight.kernels.attention import blocks_of as blocks_of_attention
from rushlight.kernels.reference.windows import out_sizes
from rushlight.memory.estimates.standins import order_of

INT64 = np.dtype(np.int64)
RULES: dict[str, tuple[tuple[str, ...], Any]] = {}
WORK: dict[str, tuple[tuple[str, ...], Any]] = {}


class Made(NamedTuple):
    """An array that an operator makes.  order: its dimensions by decreasing stride, None for C order."""

    shape: tuple[int, ...]
    dtype: Any
    order: Any = None

    @property
    def nbytes(self) -> int:
        return int(math.prod(self.shape) * np.dtype(self.dtype).itemsize)


def rule(*names: str) -> Callable[[Any], Any]:
    """Declare what the operators of these names make."""

    def add(fn: Any) -> Any:
        code = fn.__code__
        for name in names:
            RULES[name] = code.co_varnames[: code.co_argcount], fn
        return fn

    return add


def work(*names: str) -> Callable[[Any], Any]:
    """Declare the bytes that kernels of these operators need for a moment beside inputs and results."""

    def add(fn: Any) -> Any:
        code = fn.__code__
        for name in names:
            WORK[name] = code.co_varnames[: code.co_argcount], fn
        return fn

    return add


def asked(table: dict[str, tuple[tuple[str, ...], Any]], op: Any, arrays: Any, statics: Any) -> Any:
    """What the rule for `op` in a table says; None without one."""
    found = table.get(op.name)
    if found is None:
        return None
    requests, fn = found
    tensors = op.tensors
    if op.sequence is not None:
        arrays = (*arrays[: op.sequence], tuple(arrays[op.sequence :]))
    values = dict(zip(tensors, arrays, strict=False)) | dict(zip(op.static_names, statics, strict=False))
    return fn(*(values.get(name) for name in requests))


def same(x: Any) -> Made:
    """Like an array, in its memory order."""
    return Made(x.shape, x.dtype, order_of(x))


def dense(x: Any) -> Made:
    """Like an array, in C order: what kernels write."""
    return Made(x.shape, x.dtype)


# Of the shape of the first input ------------------------------------------------------------------------------

rule("scaled", "feature_dropout", "alpha_dropout", "leaky_relu", "hardtanh", "threshold", "fill_", "index_add",
     "index_copy", "index_fill", "index_put", "scatter", "scatter_value", "scatter_add", "scatter_reduce", "masked_fill",
     "masked_fill_tensor", "masked_scatter", "slice_scatter", "diagonal_scatter", "tril", "triu", "flip", "roll", "put",
     "random_", "rrelu_with_noise", "hardshrink", "softshrink", "falling_leaky_relu", "elu_of_input", "elu", "nothing",
     "fill", "fill_tensor", "copy_into", "no_gradient", "cumsum", "cumprod", "logcumsumexp", "window_sum",
     "local_response_norm")(lambda input: [same(input)])  # fmt: skip
rule("gelu", "softplus", "softmax", "log_softmax", "prelu_kernel", "native_batch_norm_eval")(
    lambda input: [dense(input)]
)
rule("threshold_backward", "relu_backward", "leaky_relu_backward", "dropout_backward", "keep")(
    lambda grad: [dense(grad)]
)
rule("outside", "between", "strictly", "not_under")(lambda input: [Made(input.shape, np.dtype(bool), order_of(input))])
rule("sort", "cummax", "cummin")(lambda input: [dense(input), Made(input.shape, INT64)])
rule("argsort")(lambda input: [Made(input.shape, INT64)])


@rule("clone")
def _clone(input: Any, format: Any) -> Any:
    if format is None or getattr(format, "name", str(format)).endswith("preserve_format"):
        return [same(input)]
    return [dense(input)]


rule("_to_copy")(lambda input, dtype: [Made(input.shape, dtype, order_of(input))])


@rule("native_dropout")
def _dropout(input: Any) -> Any:
    return [dense(input), Made(((input.size + 7) // 8,), np.dtype(np.uint8))]


def statistics_dtype(dtype: Any) -> Any:
    """The dtype of means and deviations of values of a dtype."""
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


@rule("native_layer_norm")
def _layer_norm(input: Any, k: Any) -> Any:
    rows = math.prod(input.shape[: input.ndim - k])
    return [dense(input), *[Made((rows,), statistics_dtype(input.dtype))] * 2]


@rule("fused_rms_norm")
def _rms_norm(input: Any, k: Any) -> Any:
    return _layer_norm(input, k)[:2]


@rule("native_group_norm")
def _group_norm(input: Any, groups: Any) -> Any:
    return [dense(input), *[Made((input.shape[0], groups), statistics_dtype(input.dtype))] * 2]


@rule("native_batch_norm")
def _batch_norm(input: Any) -> Any:
    return [dense(input), *[Made((input.shape[1],), statistics_dtype(input.dtype))] * 2]


@rule("glu")
def _glu(input: Any, dim: Any) -> Any:
    return [Made(tuple(n // 2 if i == dim % input.ndim else n for i, n in enumerate(input.shape)), input.dtype)]


# Products -----------------------------------------------------------------------------------------------------


@rule("mm")
def _mm(input: Any, mat2: Any) -> Any:
    return [Made((input.shape[0], mat2.shape[1]), input.dtype)]


@rule("bmm")
def _bmm(input: Any, mat2: Any) -> Any:
    lead = np.broadcast_shapes(input.shape[:-2], mat2.shape[:-2])
    return [Made((*lead, input.shape[-2], mat2.shape[-1]), input.dtype)]


rule("mv")(lambda input, vec: [Made(input.shape[:1], input.dtype)])
rule("dot")(lambda input, other: [Made((), input.dtype)])
rule("outer")(lambda input, vec2: [Made((input.shape[0], vec2.shape[0]), np.result_type(input, vec2))])
rule("addmm")(lambda mat1, mat2: _bmm(mat1, mat2))


@rule("linear")
def _linear(input: Any, weight: Any) -> Any:
    return [Made((*input.shape[:-1], weight.shape[0]), input.dtype)]


@work("linear")
def _linear_work(input: Any, weight: Any) -> int:
    folded = 0 if input.ndim == 2 or input.flags.c_contiguous else int(input.nbytes)  # to rows
    if input.dtype not in HALVES:
        return folded
    return folded + blas.work_of_halves(math.prod(input.shape[:-1]), input.shape[-1], weight.shape[0])


@work("mm", "bmm")
def _product_work(input: Any, mat2: Any) -> int:
    if input.dtype in HALVES:
        return blas.work_of_halves(input.shape[-2], input.shape[-1], mat2.shape[-1])
    return sum(int(x.nbytes) for x in (input, mat2) if not strided_for_blas(x))


def strided_for_blas(x: Any) -> bool:
    """Whether BLAS takes matrices as they lie: rows or columns of neighbours."""
    s, item = x.strides[-2:], x.itemsize
    return bool(item in s or x.shape[-1] == 1 or x.shape[-2] == 1)


@rule("einsum")
def _einsum(input: Any, other: Any, la: Any, lb: Any, lo: Any) -> Any:
    sizes = dict(zip(la, input.shape, strict=False)) | {
        k: n for k, n in zip(lb, () if other is None else other.shape, strict=False) if n != 1
    }
    return [Made(tuple(sizes[k] for k in lo), input.dtype)]


@rule("scaled_dot_product_attention")
def _attention(query: Any, key: Any, value: Any, groups: Any) -> Any:
    batch = query.shape[:-2] if groups > 1 else np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    shape = (*batch, query.shape[-2], value.shape[-1])
    n = len(shape)
    order = (*range(n - 3), n - 2, n - 3, n - 1) if n >= 4 and groups == 1 else None
    four = (math.prod(batch[:-1]), *batch[-1:], query.shape[-2])
    return [Made(shape, query.dtype, order), Made(four, statistics_dtype(query.dtype))]


def block_of_scores(query: Any, key: Any, is_causal: Any) -> int:
    """Bytes of the scores that exist at once where attention is computed block by block."""
    shape = (math.prod(query.shape[:-3]), query.shape[-3] if query.ndim > 2 else 1, query.shape[-2], key.shape[-2])
    spans = [(b.b, b.heads, b.rows) for b in blocks_of_attention(shape, bool(is_causal))]
    sizes = [math.prod(s.stop - s.start for s in span) * key.shape[-2] for span in spans]
    return int(max(sizes, default=0) * max(query.itemsize, 4))


@work("scaled_dot_product_attention")
def _attention_work(query: Any, key: Any, is_causal: Any, drop: Any) -> int:
    return 0 if drop is None else block_of_scores(query, key, is_causal) * 17 // 16  # and the bits of the mask


# Convolution and pooling ----------------------------------------------------------------------------------------


@rule("conv_op")
def _conv(input: Any, weight: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    out = out_sizes(input.shape[2:], (tuple(weight.shape[2:]), tuple(stride), tuple(padding), tuple(dilation)))
    return [Made((input.shape[0], weight.shape[0], *out), input.dtype)]


rule("conv_input_op", "conv_weight_op")(lambda input, shape: [Made(tuple(shape), input.dtype)])


@work("conv_input_op")
def _turned(input: Any, weight: Any, stride: Any) -> int:
    return int(weight.nbytes) if all(s == 1 for s in stride) else 0  # a copy, turned round


@rule("max_pool_op")
def _max_pool(input: Any, geometry: Any, out_size: Any) -> Any:
    shape = (*input.shape[: input.ndim - len(out_size)], *out_size)
    which = np.uint8 if math.prod(geometry[0]) <= 256 else np.int64
    return [Made(shape, input.dtype), Made(shape, np.dtype(which))]


rule("pool_scatter_op", "window_spread_op")(lambda input, size: [Made(tuple(size), input.dtype)])
rule("pool_gather_op")(lambda input, which: [Made(which.shape, input.dtype)])


@rule("window_sum_op")
def _window_sum(input: Any, out_size: Any) -> Any:
    return [Made((*input.shape[: input.ndim - len(out_size)], *out_size), input.dtype)]


@rule("im2col_op")
def _im2col(input: Any, geometry: Any) -> Any:
    places = math.prod(out_sizes(input.shape[2:], geometry))
    return [Made((input.shape[0], input.shape[1] * math.prod(geometry[0]), places), input.dtype)]


@rule("pad_op")
def _pad(input: Any, pads: Any) -> Any:
    return [Made(tuple(n + sum(p) for n, p in zip(input.shape, pads, strict=True)), input.dtype)]


# Reductions -----------------------------------------------------------------------------------------------------


def reduced(x: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Made:
    """The shape that a reduction over `dim` leaves; None is all."""
    dims = (
        range(x.ndim) if dim is None or dim == () else [d % x.ndim for d in (dim if isinstance(dim, tuple) else (dim,))]
    )
    shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims)
    return Made(shape, dtype or x.dtype)


@rule("sum", "mean", "amax", "amin", "var", "std", "logsumexp", "nansum", "prod")
def _reduce(input: Any, dim: Any, keepdim: Any) -> Any:
    return [reduced(input, dim, bool(keepdim), INT64 if input.dtype.kind in "biu" else None)]


rule("var_mean", "std_mean", "aminmax")(lambda input, dim, keepdim: [reduced(input, dim, bool(keepdim))] * 2)
rule("linalg_vector_norm")(lambda input, dim, keepdim: [reduced(input, dim, keepdim)])
rule("truth_op")(lambda input, dim, keepdim: [reduced(input, dim, keepdim, np.dtype(bool))])
rule("arg_op")(lambda input, dim, keepdim: [reduced(input, dim, keepdim, INT64)])
rule("max", "min", "kthvalue", "median", "mode")(
    lambda input, dim, keepdim: [reduced(input, dim, keepdim), reduced(input, dim, keepdim, INT64)]
)
rule("max_all", "min_all", "median_all")(lambda input: [Made((), input.dtype)])
rule("sum_to", "first_of")(lambda input, size: [Made(tuple(size), input.dtype)])


@rule("topk")
def _topk(input: Any, k: Any, dim: Any) -> Any:
    shape = tuple(k if i == dim % input.ndim else n for i, n in enumerate(input.shape))
    return [Made(shape, input.dtype), Made(shape, INT64)]


# Losses -----------------------------------------------------------------------------------------------------------


def lossy(shape: Any, dtype: Any, reduction: str) -> Made:
    """The result of a loss over `shape`."""
    return Made(tuple(shape) if reduction == "none" else (), dtype)


@rule("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy",
      "binary_cross_entropy_with_logits", "soft_margin_loss")  # fmt: skip
def _pointwise_loss(input: Any, target: Any, reduction: Any) -> Any:
    return [lossy(np.broadcast_shapes(input.shape, target.shape), input.dtype, reduction)]


@rule("cross_entropy")
def _cross_entropy(input: Any, reduction: Any) -> Any:
    rows = (input.shape[0], *input.shape[2:])
    wide = statistics_dtype(input.dtype)
    return [lossy(rows, input.dtype, reduction), Made(rows, wide), Made((), wide)]


@rule("linear_cross_entropy")
def _linear_cross_entropy(input: Any, reduction: Any) -> Any:
    rows, wide = input.shape[:-1], statistics_dtype(input.dtype)
    return [lossy(rows, input.dtype, reduction), Made(rows, wide), Made((), wide)]


@work("linear_cross_entropy")
def _linear_cross_entropy_work(input: Any, linear_weight: Any, rows: Any) -> int:
    return int(min(rows or 1024, math.prod(input.shape[:-1])) * linear_weight.shape[0] * 4)


@rule("nll_loss")
def _nll(input: Any, reduction: Any) -> Any:
    return [lossy((input.shape[0], *input.shape[2:]), input.dtype, reduction)]


rule("nll_loss_backward")(lambda grad, shape: [Made(tuple(shape), grad.dtype)])


# Rows, indices and joins --------------------------------------------------------------------------------------------


rule("embedding")(lambda weight, indices: [Made((*indices.shape, weight.shape[1]), weight.dtype)])
rule("embedding_dense_backward")(lambda grad, count: [Made((count, grad.shape[-1]), grad.dtype)])
rule("embedding_bag")(lambda weight, bags: [Made((bags, weight.shape[1]), weight.dtype)])
rule("gather")(lambda input, index: [Made(index.shape, input.dtype)])
rule("take")(lambda input, index: [Made(index.shape, input.dtype)])
rule("gather_adjoint", "place_along", "slice_scatter_zeros", "diagonal_zeros", "index_select_adjoint", "take_adjoint",
     "index_zeros")(lambda input, size: [Made(tuple(size), input.dtype)])  # fmt: skip


@rule("index_select")
def _index_select(input: Any, index: Any, dim: Any) -> Any:
    return [Made(tuple(index.size if i == dim % input.ndim else n for i, n in enumerate(input.shape)), input.dtype)]


@rule("cat")
def _cat(tensors: Any, dim: Any) -> Any:
    shape = list(tensors[0].shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    return [Made(tuple(shape), np.result_type(*tensors))]


@rule("stack")
def _stack(tensors: Any, dim: Any) -> Any:
    shape = tensors[0].shape
    dim %= len(shape) + 1
    return [Made((*shape[:dim], len(tensors), *shape[dim:]), np.result_type(*tensors))]


@rule("repeat")
def _repeat(input: Any, repeats: Any) -> Any:
    shape = (1,) * (len(repeats) - input.ndim) + input.shape
    return [Made(tuple(n * r for n, r in zip(shape, repeats, strict=True)), input.dtype)]


rule("as_strided_adjoint", "unfold_adjoint")(lambda input, shape: [Made(tuple(shape), input.dtype)])


@rule("resample_op", "resample_bytes")
def _resample(input: Any, dim: Any, taps: Any) -> Any:
    rows = taps[0].shape[0] if isinstance(taps, (tuple, list)) else taps.shape[0]
    return [Made(tuple(rows if i == dim % input.ndim else n for i, n in enumerate(input.shape)), input.dtype)]


rule("resample_adjoint_op")(lambda input, size: [Made(tuple(size), input.dtype)])
