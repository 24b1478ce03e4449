"""The two halves of a convolution's backward, each on its own.

>>> import rushlight as torch
>>> torch.nn.grad.conv2d_input((1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))[0, 0].tolist()
[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.ops.conv import convolutions
from rushlight.ops.conv.convolutions import check_numbers, spread
from rushlight.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _numbers(
    name: str, n: int, stride: int | Sequence[int], padding: int | Sequence[int], dilation: int | Sequence[int]
) -> tuple[Any, Any, Any]:
    """Each of them for all dimensions.  Raises RuntimeError for what makes no convolution."""
    values = [
        spread(name, what, v, n) for what, v in (("stride", stride), ("padding", padding), ("dilation", dilation))
    ]
    check_numbers(name, *values)
    return values[0], values[1], values[2]


def _input(
    n: int, size: Sequence[int], weight: Tensor, grad_output: Tensor, numbers: tuple[Any, Any, Any], groups: int
) -> Tensor:
    _check_output(f"conv{n}d_input", n, size, weight.shape, grad_output, numbers)
    return convolutions.conv_input_op(grad_output, weight, tuple(size), *numbers, groups)


def _weight(
    n: int, input: Tensor, size: Sequence[int], grad_output: Tensor, numbers: tuple[Any, Any, Any], groups: int
) -> Tensor:
    _check_output(f"conv{n}d_weight", n, input.shape, size, grad_output, numbers)
    return convolutions.conv_weight_op(grad_output, input, tuple(size), *numbers, groups)


def _check_output(
    name: str, n: int, size: Sequence[int], kernel: Sequence[int], grad_output: Tensor, numbers: tuple[Any, ...]
) -> None:
    """Raise RuntimeError where the gradient is not of the shape that the convolution's output has."""
    if len(size) != n + 2 or len(kernel) != n + 2:
        raise RuntimeError(
            f"{name}: expected shapes of {n + 2} dimensions, got input {tuple(size)}, weight {tuple(kernel)}"
        )
    each = zip(size[2:], kernel[2:], *numbers, strict=True)
    sizes = [(s + 2 * p - d * (k - 1) - 1) // st + 1 for s, k, st, p, d in each]
    wanted = (size[0], kernel[0], *sizes)
    if tuple(grad_output.shape) != wanted:
        raise RuntimeError(f"{name}: expected a grad_output of shape {wanted}, got {tuple(grad_output.shape)}")


def conv1d_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: int | Sequence[int] = 1,
                 padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """The gradient of conv1d by its input.  weight: (O, C/groups, K), grad_output: (N, O, L) -> input_size (N, C, S)"""
    return _input(1, input_size, weight, grad_output, _numbers("conv1d_input", 1, stride, padding, dilation), groups)


def conv1d_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: int | Sequence[int] = 1,
                  padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """The gradient of conv1d by its weight.  input: (N, C, S), grad_output: (N, O, L) -> weight_size (O, C/groups, K)"""
    return _weight(1, input, weight_size, grad_output, _numbers("conv1d_weight", 1, stride, padding, dilation), groups)


def conv2d_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: int | Sequence[int] = 1,
                 padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """The gradient of conv2d by its input.  weight: (O, C/groups, *K), grad_output: (N, O, *L) -> input_size (N, C, *S)"""
    return _input(2, input_size, weight, grad_output, _numbers("conv2d_input", 2, stride, padding, dilation), groups)


def conv2d_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: int | Sequence[int] = 1,
                  padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """The gradient of conv2d by its weight.  input: (N, C, *S), grad_output: (N, O, *L) -> weight_size (O, C/groups, *K)"""
    return _weight(2, input, weight_size, grad_output, _numbers("conv2d_weight", 2, stride, padding, dilation), groups)


def conv3d_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: int | Sequence[int] = 1,
                 padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """The gradient of conv3d by its input.  weight: (O, C/groups, *K), grad_output: (N, O, *L) -> input_size (N, C, *S)"""
    return _input(3, input_size, weight, grad_output, _numbers("conv3d_input", 3, stride, padding, dilation), groups)


def conv3d_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: int | Sequence[int] = 1,
                  padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """The gradient of conv3d by its weight.  input: (N, C, *S), grad_output: (N, O, *L) -> weight_size (O, C/groups, *K)"""
    return _weight(3, input, weight_size, grad_output, _numbers("conv3d_weight", 3, stride, padding, dilation), groups)
