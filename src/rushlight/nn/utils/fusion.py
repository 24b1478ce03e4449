"""Folding a batch normalisation, in evaluation, into the layer before it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.nn.parameter import Parameter

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module
    from rushlight.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that also does the normalisation."""
    with no_grad():
        bias = ops.zeros_like(bn_rm) if conv_b is None else conv_b
        factor = (bn_rv + bn_eps).rsqrt() if bn_w is None else bn_w * (bn_rv + bn_eps).rsqrt()
        shift = 0 if bn_b is None else bn_b
        shape = [1, -1] if transpose else [-1, 1]
        weight = conv_w * factor.reshape(shape + [1] * (conv_w.ndim - 2))
        fused = (bias - bn_rm) * factor + shift
    return (
        Parameter(weight.to(conv_w.dtype), conv_w.requires_grad),
        Parameter(fused.to(bias.dtype), True if conv_b is None else conv_b.requires_grad),
    )


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A copy of `conv` that also does the normalisation `bn`; both in evaluation mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear map that also does the normalisation."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of `linear` that also does the normalisation `bn`; both in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
