"""Operators by element, of losses, norms and indices under the arguments that they have below PyTorch's functions."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.naming import called
from rushlight.dispatch.formats import memory_format
from rushlight.dispatch.named import Named
from rushlight.dispatch.registry import NAMESPACES
from rushlight.generator import Generator
from rushlight.tensor import Tensor, layout

torch, functional = Named(""), Named("nn.functional")
REDUCTIONS = ("none", "mean", "sum")


def loss(name: str) -> Callable[..., Any]:
    """A loss whose `reduction` is a number: 0 none, 1 mean, 2 sum."""

    def of_numbers(input: Tensor, target: Tensor, *options: Any, reduction: int = 1, **named: object) -> Any:
        if options and len(options) >= REDUCTION.get(name, 1):
            at = REDUCTION.get(name, 1) - 1
            reduction, options = options[at], (*options[:at], *options[at + 1 :])
        words = dict(zip(OPTIONS.get(name, ()), options, strict=False)) | named
        return NAMESPACES["nn.functional"][name](input, target, reduction=REDUCTIONS[reduction], **words)

    return called(of_numbers, name)


# The place of `reduction` after input and target, where it is not the first, and the options beside it.
REDUCTION = {"binary_cross_entropy": 2, "binary_cross_entropy_with_logits": 3, "multi_margin_loss": 4}
OPTIONS = {
    "binary_cross_entropy": ("weight",),
    "binary_cross_entropy_with_logits": ("weight", "pos_weight"),
    "multi_margin_loss": ("p", "margin", "weight"),
    "huber_loss": ("delta",),
    "smooth_l1_loss": ("beta",),
}
LOSSES = ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss", "binary_cross_entropy",
          "binary_cross_entropy_with_logits", "multi_margin_loss", "multilabel_margin_loss")  # fmt: skip


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100,
             ) -> Tensor:  # fmt: skip
    """The loss alone, of `nll_loss_forward`."""
    word = REDUCTIONS[reduction]
    return functional.nll_loss(input, target, weight, reduction=word, ignore_index=ignore_index)


def nll_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The loss, and the weight of all targets that are not ignored: 0 where nothing is summed."""
    found = nll_loss(input, target, weight, reduction, ignore_index)
    counts = target != ignore_index
    if reduction == 0 and input.dim() > 1:
        return found, input.new_zeros(())
    if weight is None:
        return found, counts.sum().to(input.dtype)
    return found, (weight[target.clamp(min=0)] * counts).sum()


def multilabel_margin_loss_forward(input: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """The loss, and where classes are among the targets."""
    before = (target >= 0).cumprod(-1).bool()  # targets end at the first that is negative
    hit = input.new_zeros(input.shape).scatter(-1, target.clamp(min=0), before.to(input.dtype), reduce="add")
    result = functional.multilabel_margin_loss(input, target, reduction=REDUCTIONS[reduction])
    return result, (hit > 0).to(input.dtype)


def log_sigmoid_forward(input: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithm of the sigmoid, and exp(-|x|)."""
    return functional.logsigmoid(input), torch.exp(-input.abs())


def softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`torch.softmax`."""
    return torch.softmax(input, dim)


def log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`torch.log_softmax`."""
    return torch.log_softmax(input, dim)


def safe_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`torch.softmax`, and 0 in rows that are -inf altogether."""
    dead = (input == -builtins.float("inf")).all(dim, keepdim=True)
    return torch.softmax(input.masked_fill(dead, 0.0), dim, dtype=dtype).masked_fill(dead, 0.0)


def slice_of(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The view `input[..., start:end:step]` at `dim`."""
    at = dim % input.dim()
    return input[(slice(None),) * at + (slice(start, end, step),)]


def index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """The elements at `indices`, None of which stands for a whole dimension."""
    return input[places(indices)]


def places(indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """Indices as one writes them."""
    return tuple(slice(None) if i is None else i for i in indices)


def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False,
               unsafe: bool = False) -> Tensor:  # fmt: skip
    """Write, or add, values at `indices`."""
    if all(i is not None for i in indices):
        return input.index_put_(tuple(indices), values, accumulate)
    flat = torch.arange(input.numel()).reshape(input.shape)[places(indices)]
    return input.put_(flat, values.expand(flat.shape), accumulate)


def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """As `index_put_`, of a copy."""
    return index_put_(input.clone(), indices, values, accumulate)


def masked_index(input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: complex) -> Tensor:
    """The elements at `indices` where `mask` holds, `fill` elsewhere; indices there may be anything."""
    inside = [i if i is None else i.clamp(0, n - 1) for i, n in zip(indices, input.shape, strict=False)]
    return index(input, inside).masked_fill(~mask, fill)


def masked_index_put(input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
    """Values added at `indices` where `mask` holds."""
    inside = [i if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, input.shape, strict=False)]
    return index_put(input, inside, values.masked_fill(~mask, 0), True)


def to_copy(
    input: Tensor,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | int | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A copy in another dtype, on another device."""
    return input.to(device or input.device, dtype or input.dtype, copy=True, memory_format=memory_format)


def unsafe_view(input: Tensor, size: Sequence[int]) -> Tensor:
    """`reshape`."""
    return input.reshape(size)


def elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale input where it is positive, else scale alpha (exp(input_scale input) - 1)."""
    below = torch.expm1(input * input_scale) * (alpha * scale)
    return torch.where(input > 0, input * scale, below)


def prelu_kernel(input: Tensor, weight: Tensor) -> Tensor:
    """input where it is positive, else its product with weight, which broadcasts."""
    return torch.where(input > 0, input, weight * input)


def trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1: Sequence[int], expand2: Sequence[int],
              expand3: Sequence[int], sumdim: Sequence[int], unroll_dim: int = 1) -> Tensor:  # fmt: skip
    """The sum over `sumdim` of the product of three, each unsqueezed at its places."""
    grown = []
    for x, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in dims:
            x = x.unsqueeze(dim)
        grown.append(x)
    product = grown[0] * grown[1] * grown[2]
    return product.sum(tuple(sumdim)) if sumdim else product


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           ) -> tuple[Tensor, ...]:  # fmt: skip
    """`torch.unique` with all of its results, empty where not asked for."""
    found = torch.unique(input, sorted, True, True)
    none = input.new_empty((0,), dtype=found[1].dtype)
    return found[0], found[1] if return_inverse else none, found[2] if return_counts else none


def unique_dim(input: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
               ) -> tuple[Tensor, ...]:  # fmt: skip
    """As `unique`, of slices at `dim`."""
    return tuple(torch.unique(input, sorted, True, True, dim))


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None,
                       ) -> tuple[Tensor, ...]:  # fmt: skip
    """`torch.unique_consecutive` with all of its results, empty where not asked for."""
    found = torch.unique_consecutive(input, True, True, dim)
    none = input.new_empty((0,), dtype=found[1].dtype)
    return found[0], found[1] if return_inverse else none, found[2] if return_counts else none


def fft(name: str, last: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A transform whose norm is a number: 0 none, 1 by the root of the length, 2 by the length."""
    space = NAMESPACES["fft"]

    def transformed(input: Tensor, dim: Sequence[int], normalization: int, way: Any) -> Tensor:
        if name == "r2c":
            norm = ("backward", "ortho", "forward")[normalization]
            result: Tensor = space["rfftn" if way else "fftn"](input, dim=tuple(dim), norm=norm)
        elif name == "c2r":
            norm = ("forward", "ortho", "backward")[normalization]
            sizes = [input.shape[d] for d in dim[:-1]] + [way]
            result = space["irfftn"](input, s=sizes, dim=tuple(dim), norm=norm)
        else:
            norm = (("forward", "ortho", "backward"), ("backward", "ortho", "forward"))[way][normalization]
            result = space["fftn" if way else "ifftn"](input, dim=tuple(dim), norm=norm)
        return result

    return transformed


def assert_async(input: Tensor, assert_msg: str = "Expected the tensor to be true") -> None:
    """Raise RuntimeError where the one element is 0."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def assert_metadata(
    a: Tensor,
    size: Any = None,
    stride: Any = None,
    dtype: dtype | None = None,
    *,
    device: device | str | int | None = None,
    layout: layout | None = None,
) -> None:
    """Raise RuntimeError where a tensor is not what is said of it."""
    got = {
        "size": tuple(a.shape),
        "stride": tuple(a.stride()),
        "dtype": a.dtype,
        "device": a.device,
        "layout": a.layout,
    }
    said = {
        "size": size and tuple(size),
        "stride": stride and tuple(stride),
        "dtype": dtype,
        "device": device,
        "layout": layout,
    }
    for what, expected in said.items():
        if expected is not None and str(expected) != str(got[what]):
            raise RuntimeError(f"_assert_tensor_metadata: expected {what} {expected}, got {got[what]}")


def batch_norm(
    input: Tensor, weight: object, bias: object, *rest: object, out: tuple[Tensor, ...] | None = None
) -> Any:
    """`native_batch_norm`, with or without running statistics."""
    return torch.native_batch_norm(input, weight, bias, *(rest if len(rest) == 5 else (None, None, *rest)), out=out)


def evaluated_batch_norm(
    input: Tensor, weight: object, bias: object, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> Any:
    """`native_batch_norm` by running statistics."""
    return torch.native_batch_norm(input, weight, bias, mean, var, False, momentum, eps)


def updating_batch_norm(
    input: Tensor, weight: object, bias: object, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple[Any, ...]:
    """`native_batch_norm` in training, and no reserved space."""
    found = torch.native_batch_norm(input, weight, bias, mean, var, True, momentum, eps)
    return *found, input.new_empty((0,), dtype=dtypes.uint8)


def rrelu(
    input: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Leaky relu of random slopes, which are written into `noise`, in training; else of the middle one."""
    if not training:
        return functional.leaky_relu(input, (lower + upper) / 2)
    slopes = torch.where(input > 0, 1.0, torch.empty_like(input).uniform_(lower, upper, generator=generator))
    noise.copy_(slopes)
    return input * slopes


def sort(input: Tensor, *args: object, stable: bool | None = None, **kwargs: object) -> Any:
    """`torch.sort`."""
    return torch.sort(input, *args, stable=bool(stable), **kwargs)


MEANINGS: dict[str, Callable[..., Any]] = {name: loss(name) for name in LOSSES} | {
    "nll_loss": nll_loss,
    "nll_loss2d": nll_loss,
    "nll_loss_forward": nll_loss_forward,
    "nll_loss2d_forward": nll_loss_forward,
    "multilabel_margin_loss_forward": multilabel_margin_loss_forward,
    "log_sigmoid_forward": log_sigmoid_forward,
    "log_sigmoid": lambda x: functional.logsigmoid(x),
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "_safe_softmax": safe_softmax,
    "slice": slice_of,
    "index": index,
    "_unsafe_index": index,
    "index_put": index_put,
    "index_put_": index_put_,
    "_index_put_impl_": index_put_,
    "_unsafe_index_put": index_put,
    "_unsafe_masked_index": masked_index,
    "_unsafe_masked_index_put_accumulate": masked_index_put,
    "_to_copy": to_copy,
    "_unsafe_view": unsafe_view,
    "alias": lambda x: x.view_as(x),
    "lift_fresh": lambda x: x.view_as(x),
    "lift_fresh_copy": lambda x: x.clone(),
    "lift": lambda x: x,
    "zero": lambda x: torch.fill(x, 0),
    "_prelu_kernel": prelu_kernel,
    "_trilinear": trilinear,
    "_unique": lambda x, sorted=True, return_inverse=False: unique(x, sorted, return_inverse)[:2],
    "_unique2": unique,
    "unique_dim": unique_dim,
    "unique_consecutive": unique_consecutive,
    "_fft_r2c": fft("r2c"),
    "_fft_c2r": fft("c2r"),
    "_fft_c2c": fft("c2c"),
    "_local_scalar_dense": lambda x: x.item(),
    "_is_all_true": lambda x: x.all(),
    "_is_any_true": lambda x: x.any(),
    "_assert_async": assert_async,
    "_assert_scalar": lambda x, message: assert_async(x, message),
    "_assert_tensor_metadata": assert_metadata,
    "is_pinned": lambda x, device=None: False,
    "sym_size": lambda x, dim=None: x.size(dim) if dim is not None else x.size(),
    "sym_numel": lambda x: x.numel(),
    "sym_stride": lambda x, dim=None: x.stride(dim) if dim is not None else x.stride(),
    "sym_storage_offset": lambda x: x.storage_offset(),
    "affine_grid_generator": lambda theta, size, align_corners: functional.affine_grid(
        theta, list(size), align_corners
    ),
    "__lshift__": operator.lshift,
    "__rshift__": operator.rshift,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "sort": sort,
    "elu": elu,
    "block_diag": lambda tensors: torch.block_diag(*tensors),
    "_native_batch_norm_legit": batch_norm,
    "_native_batch_norm_legit_no_training": evaluated_batch_norm,
    "_batch_norm_with_update": updating_batch_norm,
    "rrelu_with_noise": rrelu,
}
