"""The Wishart distribution of positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Number
from typing import Any, Self

from rushlight.basics.caller import warn
from rushlight.dispatch.named import linalg, named
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.vectors.multivariate_normal import FORMS, OfCovariance, factor_of, half_log_det
from rushlight.ops.random.gamma_sample import log_standard_gamma
from rushlight.tensor import Tensor

__all__ = ["Wishart"]


class Wishart(OfCovariance, ExponentialFamily):
    """The sum of `df` products x x^T of normal vectors of one covariance V; `df` may be any number over n - 1.

    df: a number or (*batch); exactly one of covariance, precision and the covariance's Cholesky factor: (*batch, n, n).
    Samples: (*sample, *batch, n, n). Raises ValueError for a `df` of n - 1 or less and for matrices that are not positive
    definite, AssertionError for none or several of them; warns of a `df` below n, whose samples are nearly singular.
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
                 validate_args: bool | None = None):  # fmt: skip
        name, matrix = _one_matrix(covariance_matrix, precision_matrix, scale_tril)
        count = named.tensor(df, dtype=matrix.dtype, device=matrix.device) if isinstance(df, Number) else df
        batch = named.broadcast_shapes(matrix.shape[:-2], count.shape)
        n = matrix.shape[-1]
        if bool((count <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if bool((count < n).any()):
            warn(f"Wishart: df={df} is below {n}, the rows of a sample: samples may be singular to the last digit; "
                          "take a larger df, or a wider dtype")  # fmt: skip
        self.df = count.expand(batch)
        self._take(name, matrix, batch)
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def arg_constraints(self) -> dict[Any, Any]:
        """The matrices are positive definite, and df is over n - 1, which the constructor checks."""
        matrix = constraints.positive_definite
        return {"covariance_matrix": matrix, "precision_matrix": matrix, "scale_tril": constraints.lower_cholesky,
                "df": constraints.greater_than(0)}  # fmt: skip

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        new.df = self.df.expand(batch_shape)
        new._take_from(self, batch_shape)
        return self._finished(new, batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) V; NaN for df up to n + 1."""
        factor = self.df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V_ij^2 + V_ii V_jj)."""
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        """Samples of which those singular in this dtype are drawn again, up to `max_try_correction` times, 10 by default."""
        drawn = self._bartlett_sampling(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            singular = ~constraints.positive_definite.check(drawn)
            if not singular.any():
                break
            drawn = named.where(singular[..., None, None], self._bartlett_sampling(sample_shape), drawn)
        return drawn

    def _bartlett_sampling(self, sample_shape: Sequence[int]) -> Tensor:
        """L A A^T L^T, without a second look at what is singular.

        Normal numbers are below the diagonal of A, roots of chi-squared ones of df - i on it (M. S. Bartlett, On the theory of
        statistical regression, Proceedings of the Royal Society of Edinburgh 53, 1934).
        """
        df, n, shape = self.df, self._event_shape[-1], self._extended_shape(sample_shape)
        halves = (df.unsqueeze(-1) - named.arange(n, dtype=df.dtype, device=df.device)) / 2
        chi = (0.5 * (log_standard_gamma(halves.expand(shape[:-1])) + math.log(2))).exp()
        below = named.randn(shape, dtype=df.dtype, device=df.device).tril(-1)
        root = self._unbroadcasted_scale_tril @ (below + named.diag_embed(chi))
        return root @ root.mT

    def log_prob(self, value: Any) -> Tensor:
        """(df - n - 1) / 2 log |X| - tr(V^-1 X) / 2 - df / 2 (n log 2 + log |V|) - log Gamma_n(df / 2)."""
        self._check(value)
        df, n, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        root = linalg.cholesky(value)
        inner = linalg.solve_triangular(factor, root, upper=False)
        normalizer = df * (n / 2 * math.log(2) + half_log_det(factor)) + (df / 2).mvlgamma(n)
        return (df - n - 1) * half_log_det(root) - inner.square().sum((-2, -1)) / 2 - normalizer

    def _mean_half_log_det(self) -> Tensor:
        """E log |X| / 2 = (the sum of digamma((df - i) / 2), i < n, + n log 2) / 2 + log |L|.  (*batch)"""
        df, n = self.df, self._event_shape[-1]
        halves = (df.unsqueeze(-1) - named.arange(n, dtype=df.dtype, device=df.device)) / 2
        return (halves.digamma().sum(-1) + n * math.log(2)) / 2 + half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        df, n = self.df, self._event_shape[-1]
        normalizer = df * (n / 2 * math.log(2) + half_log_det(self._unbroadcasted_scale_tril)) + (df / 2).mvlgamma(n)
        return normalizer - (df - n - 1) * self._mean_half_log_det() + df * n / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """(df, -V^-1), of the statistics log |X| / 2 and X / 2."""
        return self.df, -self.precision_matrix

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        df, negative = natural_params
        n = self._event_shape[-1]
        return df / 2 * (n * math.log(2) - linalg.slogdet(-negative)[1]) + (df / 2).mvlgamma(n)

    @property
    def _mean_carrier_measure(self) -> Tensor:
        """Minus (n + 1) E log |X| / 2."""
        return -(self._event_shape[-1] + 1) * self._mean_half_log_det()


def _one_matrix(
    covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None
) -> tuple[str, Any]:
    """The name and the value of the one that is given, with its checks."""
    given = {k: v for k, v in zip(FORMS, (covariance_matrix, precision_matrix, scale_tril)) if v is not None}
    if len(given) != 1:
        raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    name, matrix = next(iter(given.items()))
    if matrix.dim() < 2:
        raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions"
                         if name == "scale_tril" else f"{name} must be at least two-dimensional")  # fmt: skip
    return name, matrix
