"""Layers whose weight is not trained and lies in 16, 8 or 4 bits: a product decodes some rows of it at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from rushlight.autograd.function import Function
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn import grad as gradients
from rushlight.nn.modules.conv import Conv1d, Conv2d, Conv3d, _ConvNd
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.autograd.function_vmap import VmapInfo
    from rushlight.basics.arrays import Array
    from rushlight.basics.size import Size

__all__ = ["KINDS", "FrozenConv", "FrozenLinear", "FrozenWeight"]

KINDS = ("bfloat16", "int8", "nf4")
BLOCK = 64  # elements that share a scale
AT_ONCE = 1 << 18  # elements that are decoded at once
CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
INPUTS = (gradients.conv1d_input, gradients.conv2d_input, gradients.conv3d_input)


@functools.cache
def nf4() -> Array:
    """The values of the 16 codes of NormalFloat: quantiles of the normal distribution, 0 among them, from -1 to 1.

    Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs" (2023, arXiv:2305.14314, section 3 and appendix E).
    """
    from statistics import NormalDist

    quantile, end = NormalDist().inv_cdf, (1 - 1 / 30 + 1 - 1 / 32) / 2
    above = [quantile(end + (0.5 - end) * i / 8) for i in range(8)]
    below = [-quantile(end + (0.5 - end) * i / 7) for i in range(7)]
    return np.array(sorted([*below, 0.0, *above]), np.float32) / np.float32(above[0])


@functools.cache
def _pairs() -> Array:
    """What each byte, two codes, stands for.  (256, 2)"""
    codes = np.arange(256)
    return np.ascontiguousarray(np.stack([nf4()[codes >> 4], nf4()[codes & 15]], axis=1))


class FrozenWeight(Module):
    """A weight of any shape in fewer bits: buffers `codes`, and `scales` for each 64 elements but for bfloat16.

    kind: "bfloat16", 2 bytes an element; "int8", 1.0625, to 127 parts of the largest of 64; "nf4", 0.5625, to the nearest
    of 16 values.
    """

    codes: Tensor
    scales: Tensor | None

    def __init__(self, weight: Tensor, kind: str):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"base_dtype must be one of {', '.join(KINDS)} (or None), got {kind!r}")
        array = np.ascontiguousarray(weight._array)
        if array.dtype.kind == "c" or not weight.dtype.is_floating_point:
            raise TypeError(f"a frozen weight must be of real floating-point numbers, got {weight.dtype}")
        self.shape, self.kind, self.dtype = tuple(array.shape), kind, array.dtype
        codes, scales = encoded(array.reshape(-1), kind)
        self.register_buffer("codes", wrap(codes.reshape(self.shape) if kind != "nf4" else codes))
        self.register_buffer("scales", None if scales is None else wrap(scales))

    def extra_repr(self) -> str:
        """Shape and kind."""
        return f"{self.shape}, {self.kind}"

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> FrozenWeight:
        """Codes stay codes, and scales as exact as they are, when the dtype of a model is changed."""
        for name, t in self._buffers.items():
            if t is not None and (found := fn(t)).dtype == t.dtype:
                self._buffers[name] = found
        return self

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of what is kept."""
        return tuple(t._version for t in (self.codes, self.scales) if t is not None)

    def runs(self, whole: bool = False) -> Iterator[slice]:
        """Runs of rows that are decoded at once, beginning with a block."""
        rows, width = self.shape[0], math.prod(self.shape[1:])
        unit = BLOCK // math.gcd(width, BLOCK)
        count = rows if whole else max(1, AT_ONCE // max(width * unit, 1)) * unit
        return (slice(start, min(start + count, rows)) for start in range(0, rows, max(count, 1)))

    def rows(self, at: slice, dtype: np.dtype[Any] | None = None) -> Tensor:
        """Some rows, decoded.  at: one of `runs`"""
        width = math.prod(self.shape[1:])
        start, stop = at.start * width, at.stop * width
        codes = self.codes._array.reshape(-1)
        scales = None if self.scales is None else self.scales._array[start // BLOCK : -(-stop // BLOCK)]
        found = decoded(codes, start, stop, scales, self.kind)
        return wrap(found.reshape(at.stop - at.start, *self.shape[1:]).astype(dtype or self.dtype, copy=False))

    def dense(self) -> Tensor:
        """The whole weight as it was, to rounding."""
        return ops.cat([self.rows(at) for at in self.runs()])


def encoded(flat: Array, kind: str) -> tuple[Array, Array | None]:
    """Codes and scales of numbers, found block by block."""
    if kind == "bfloat16":
        return flat.astype(ml_dtypes.bfloat16), None
    scales = np.empty(-(-flat.size // BLOCK), np.float32)
    codes = np.empty(flat.size, np.int8) if kind == "int8" else np.empty(-(-flat.size // 2), np.uint8)
    for start in range(0, flat.size, AT_ONCE):
        part = flat[start : start + AT_ONCE].astype(np.float32)
        blocks = np.pad(part, (0, -part.size % BLOCK)).reshape(-1, BLOCK)
        tops = np.abs(blocks).max(axis=1)
        scales[start // BLOCK : start // BLOCK + len(tops)] = tops
        scaled = blocks / np.where(tops > 0, tops, 1)[:, None]
        if kind == "int8":
            codes[start : start + part.size] = np.rint(scaled * 127).reshape(-1)[: part.size]
        else:
            nearest = np.searchsorted((nf4()[1:] + nf4()[:-1]) / 2, scaled.reshape(-1, 2)).astype(np.uint8)
            packed = nearest[:, 0] << 4 | nearest[:, 1]
            codes[start // 2 : start // 2 + -(-part.size // 2)] = packed[: -(-part.size // 2)]
    return codes, scales


def decoded(codes: Array, start: int, stop: int, scales: Array | None, kind: str) -> Array:
    """The numbers from `start`, where a block begins, to `stop`."""
    if scales is None:
        return codes[start:stop].astype(np.float32)
    if kind == "nf4":
        flat = _pairs()[codes[start // 2 : -(-stop // 2)]].reshape(-1)[: stop - start]
    else:
        flat = codes[start:stop].astype(np.float32)
        flat *= np.float32(1 / 127)
    whole = (stop - start) // BLOCK
    flat[: whole * BLOCK].reshape(whole, BLOCK)[...] *= scales[:whole, None]
    if flat.size > whole * BLOCK:
        flat[whole * BLOCK :] *= scales[whole]
    return flat


class FrozenLinear(Module):
    """A Linear layer whose weight is not trained and lies in fewer bits; its bias is not trained either."""

    bias: Tensor | None

    def __init__(self, layer: Linear, kind: str):
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.empty = functools.partial(Linear, layer.in_features, layer.out_features, bias=False, device="meta")
        self.weight = FrozenWeight(layer.weight, kind)
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach())

    def forward(self, input: Tensor) -> Tensor:
        """(*, in_features) -> (*, out_features)"""
        return _Product.apply(input, self)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"

    def product(self, x: Tensor) -> Tensor:
        """What `forward` computes, without the bias."""
        out = ops.empty((*x.shape[:-1], self.out_features), dtype=x.dtype)
        for at in self.weight.runs():
            out[..., at] = F.linear(x, self.weight.rows(at, x._array.dtype))
        return out

    def back(self, grad: Tensor, shape: Size) -> Tensor:
        """The gradient of the input of `product`."""
        total: Any = None
        for at in self.weight.runs():
            part = ops.matmul(grad[..., at], self.weight.rows(at, grad._array.dtype))
            total = part if total is None else total.add_(part)
        return total

    def shifted(self, out: Tensor) -> Tensor:
        """`out`, changed, with the bias."""
        return out if self.bias is None else out.add_(self.bias.to(out.dtype))


class FrozenConv(Module):
    """A convolution whose weight is not trained and lies in fewer bits; its bias is not trained either."""

    bias: Tensor | None

    def __init__(self, layer: _ConvNd, kind: str):
        super().__init__()
        self.options = {
            "stride": layer.stride,
            "padding": layer.padding,
            "dilation": layer.dilation,
            "groups": layer.groups,
        }
        if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
            self.options["padding"] = (0,) * len(layer.kernel_size)
            self.ahead: Any = layer._reversed_padding_repeated_twice
        else:
            self.ahead = None
        self.empty = functools.partial(
            next(kind for kind in (Conv1d, Conv2d, Conv3d) if isinstance(layer, kind)),
            layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.groups,
            bias=False, padding_mode=layer.padding_mode, device="meta",
        )  # fmt: skip
        self.mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        self.in_channels, self.out_channels, self.kernel_size = layer.in_channels, layer.out_channels, layer.kernel_size
        self.weight = FrozenWeight(layer.weight, kind)
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach())

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *) -> (N, out_channels, *); the batch may be left out"""
        if input.ndim == len(self.kernel_size) + 1:
            return self(input.unsqueeze(0)).squeeze(0)
        if self.ahead is not None:
            input = F.pad(input, self.ahead, mode=self.mode)
        return _Product.apply(input, self)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"

    def product(self, x: Tensor) -> Tensor:
        """What `forward` computes of a padded input, without the bias."""
        conv, dim = CONVOLUTIONS[len(self.kernel_size) - 1], x.ndim - len(self.kernel_size) - 1
        parts = [conv(x, self.weight.rows(at, x._array.dtype), **self.options)
                 for at in self.weight.runs(self.options["groups"] != 1)]  # fmt: skip
        return ops.cat(parts, dim) if len(parts) > 1 else parts[0]

    def back(self, grad: Tensor, shape: Size) -> Tensor:
        """The gradient of the input of `product`, which has this shape."""
        back, dim = INPUTS[len(self.kernel_size) - 1], grad.ndim - len(self.kernel_size) - 1
        total: Any = None
        for at in self.weight.runs(self.options["groups"] != 1):
            some = grad.narrow(dim, at.start, at.stop - at.start)
            part = back(shape, self.weight.rows(at, grad._array.dtype), some, **self.options)
            total = part if total is None else total.add_(part)
        return total

    def shifted(self, out: Tensor) -> Tensor:
        """`out`, changed, with the bias."""
        sizes = (-1, *(1,) * len(self.kernel_size))
        return out if self.bias is None else out.add_(self.bias.to(out.dtype).reshape(sizes))


class _Product(Function):
    """A product with a frozen weight, for which nothing is saved: backward decodes the weight again."""

    @staticmethod
    def forward(x: Tensor, layer: Any) -> Tensor:
        return layer.shifted(layer.product(x))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.layer = inputs
        ctx.versions, ctx.size = ctx.layer.weight.versions, x.shape

    @staticmethod
    def vmap(info: VmapInfo, in_dims: Any, x: Tensor, layer: Any) -> Any:
        x = x.movedim(in_dims[0], 0)
        if isinstance(layer, FrozenLinear):
            return _Product.apply(x, layer), 0
        return _Product.apply(x.flatten(0, 1), layer).unflatten(0, x.shape[:2]), 0

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.layer.weight.versions != ctx.versions:
            raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: "
                               f"a frozen weight of shape {list(ctx.layer.weight.shape)} was changed, or loaded, between forward "
                               "and backward")  # fmt: skip
        return ctx.layer.back(grads[0], ctx.size), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        return ctx.layer.product(tangents[0])
