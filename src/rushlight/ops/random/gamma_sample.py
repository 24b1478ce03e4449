"""Samples of the gamma distribution that are differentiable by its shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.dtypes import finfo
from rushlight.dispatch import families, randomness, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import elementwise, op
from rushlight.generator import Generator
from rushlight.kernels.reference import gamma_sample
from rushlight.levels.batch import everything
from rushlight.ops.random.random import source
from rushlight.ops.special.scipy_special import scipy_special
from rushlight.tensor import Tensor, wrap


def _no_second(g: Array) -> object:
    raise NotImplementedError("the second derivative of a sample of the gamma distribution by its concentration is not "
                              "implemented")  # fmt: skip


@elementwise(ns=None, refuse="bic",
             grads={"concentration": _no_second, "log_sample": _no_second})  # fmt: skip
def log_gamma_slope(concentration: Array, log_sample: Array) -> Array:
    """The derivative of `log_sample`, the logarithm of a sample, by the shape `concentration`.  (*), (*) -> (*)

    Implicit reparameterisation (Figurnov et al., 2018): see the kernel.
    """
    a, z = np.broadcast_arrays(concentration.astype(np.float64), log_sample.astype(np.float64))
    return gamma_sample.log_gamma_slope(a.ravel(), z.ravel()).reshape(a.shape).astype(log_sample.dtype)


@op(half=None, shape=lambda concentration: [shapes.packed(concentration)],
    batch=families.parametric,
    grads={"concentration": lambda g, concentration, out: g * log_gamma_slope(concentration, out)})  # fmt: skip
def log_standard_gamma_op(concentration: Array, generator: Generator | None) -> Array:
    """Logarithms of samples: of 0 where the shape is 0 or below.  (*) -> (*)"""
    return source(generator).log_gammas(concentration).astype(concentration.dtype)


@log_standard_gamma_op.work
def _(concentration: Array) -> int:
    return 8 * concentration.size


def log_standard_gamma(concentration: Tensor, generator: Generator | None = None) -> Tensor:
    """Logarithms of samples of the gamma distribution of rate 1, differentiable by the shapes.  (*) -> (*)

    Logarithms, because samples of small shapes underflow. Draws in float64 by Marsaglia and Tsang's method (ACM
    Transactions on Mathematical Software 26, 2000). -inf for shapes of 0 or below: all mass is at 0. Raises
    RuntimeError for shapes that are NaN.
    """
    if np.isnan(everything(raw(concentration))).any():
        raise RuntimeError("gamma samples: expected concentrations, got NaN")
    return log_standard_gamma_op(randomness.apart(concentration), generator)


def _standard_gamma(concentration: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of the gamma distribution of rate 1, differentiable by the shapes, at least the smallest normal number.

    (*) -> (*). The name by which libraries of distributions ask torch for them. Raises as `log_standard_gamma`.
    """
    smallest = float(finfo(concentration.dtype).tiny)
    return log_standard_gamma(concentration, generator).exp().clamp(min=smallest)


def _standard_gamma_grad(self: Tensor, output: Tensor) -> object:
    """The derivative of samples of the gamma distribution by its concentration `self`.  (*), (*) -> (*)"""
    return output * log_gamma_slope(self, output.log())


def _sample_dirichlet(self: Tensor, generator: Generator | None = None) -> Any:
    """Samples of the Dirichlet distribution, by its concentrations in the last dimension; not differentiable.  (*, K) -> (*, K)"""
    logs = log_standard_gamma(self.detach(), generator)
    return logs.softmax(-1)


def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Any:
    """The derivative of a number of Beta(alpha, total - alpha) along its quantile by alpha, divided by 1 - x.  (*) -> (*)

    That of the distribution function by alpha, of central differences in float64, over the density.
    """
    special: Any = scipy_special("_dirichlet_grad")
    share, a, t = np.broadcast_arrays(*(y.detach().double().numpy() for y in (x, alpha, total)))
    b, h = t - a, 1e-4 * np.maximum(a, 1e-2)
    near, far = (special.betainc(a + d, b, share) - special.betainc(a - d, b, share) for d in (h / 2, h))
    slope = (8 * near - far) / (6 * h / 2) / 2
    density = np.exp((a - 1) * np.log(share) + (b - 1) * np.log1p(-share) - special.betaln(a, b))
    return wrap(np.asarray(-slope / density / (1 - share))).to(x.dtype)
