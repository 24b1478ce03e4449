"""Cholesky factors of random correlation matrices (Lewandowski, Kurowicka and Joe, Generating random correlation matrices
based on vines and extended onion method, Journal of Multivariate Analysis 100, 2009)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.continuous.beta import Beta
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, tiny_of
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower triangular L whose L L^T is a correlation matrix with a density proportional to det^(concentration - 1).

    dim: the rows of L, 2 or more; concentration: a number or (*batch), over 1 for matrices close to the identity, 1 for all
    alike. Samples: (*sample, *batch, dim, dim), without gradients. Raises ValueError for smaller or fractional `dim`.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = ("concentration",)
    _handed_on = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if not isinstance(dim, int) or dim < 2:
            raise ValueError(f"LKJCholesky: expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def _last(self, first_row: int = 1) -> Tensor:
        """concentration + (dim - 1 - i) / 2 for the rows i = first_row, ..., dim - 1, of row 0 as of row 1.  (*batch, rows)"""
        c = self.concentration
        rows = named.arange(first_row, self.dim, dtype=c.dtype, device=c.device).clamp(min=1)
        return c.unsqueeze(-1) + (self.dim - 1 - rows) / 2

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The onion method (section 3.2): row i has i elements before the diagonal, in a uniform direction, whose squared
        length is Beta(i / 2, concentration + (dim - 1 - i) / 2).

        Numbers are drawn for row 0 too, and not used: what a seed gives is then what it gives in PyTorch."""
        with no_grad():
            second = self._last(first_row=0)
            first = named.arange(self.dim, dtype=second.dtype, device=second.device).clamp(min=1) / 2
            y = Beta(first, second, validate_args=False).sample(sample_shape)  # (*, dim)
            y[..., 0] = 0
            noise = named.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            below = y.sqrt().unsqueeze(-1) * noise / noise.norm(dim=-1, keepdim=True).clamp(min=tiny_of(noise))
            return below + named.diag_embed((1 - y).clamp(min=tiny_of(y)).sqrt())

    def log_prob(self, value: Any) -> Tensor:
        """The density of the elements below the diagonal: the product over rows k of L_kk^(2 (c - 1) + dim - k), over the
        integrals of these over balls, pi^(i / 2) Gamma(b) / Gamma(b + i / 2) with i = k - 1 and b of `_last`."""
        self._check(value)
        b, c, n = self._last(), self.concentration, self.dim
        logs = value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        integrals = b.lgamma().sum(-1) - (n - 1) * (c + (n - 1) / 2).lgamma() + n * (n - 1) / 4 * math.log(math.pi)
        return ((2 * b - 2) * logs).sum(-1) - integrals
