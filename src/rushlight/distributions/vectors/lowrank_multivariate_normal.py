"""The normal distribution of vectors whose covariance is a diagonal and a few columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.basics.size import Size
from rushlight.dispatch.named import linalg, named
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import lazy_property, standard_normal
from rushlight.distributions.vectors.multivariate_normal import half_log_det
from rushlight.tensor import Tensor

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean `loc` and covariance W W^T + diag(d): W is `cov_factor`, d `cov_diag`.

    loc: (*batch, n); cov_factor: (*batch, n, m); cov_diag: (*batch, n). The work is that of matrices of m rows, by the
    matrix determinant lemma and Woodbury's identity. Raises ValueError for shapes that do not fit.

    >>> import rushlight as torch
    >>> d = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
    >>> d.covariance_matrix.tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    mean: Tensor = forwarded("loc")
    mode: Tensor = forwarded("loc")

    def __init__(self, loc: Any, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        event = _check_shapes(loc, cov_factor, cov_diag)
        try:
            batch = named.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self.loc = loc.expand((*batch, -1))
        self.cov_factor, self.cov_diag = cov_factor.expand((*batch, -1, -1)), cov_diag.expand((*batch, -1))
        scaled = cov_factor / cov_diag.unsqueeze(-1)
        unit = named.eye(cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = linalg.cholesky(unit + cov_factor.mT @ scaled)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        new.loc, new.cov_diag = self.loc.expand((*batch_shape, -1)), self.cov_diag.expand((*batch_shape, -1))
        new.cov_factor = self.cov_factor.expand((*batch_shape, -1, -1))
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            new.__dict__[name] = self.__dict__[name]
        return self._finished(new, batch_shape)

    @lazy_property
    def variance(self) -> Tensor:
        each = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return each.expand((*self._batch_shape, *self._event_shape))

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular L with covariance L L^T: of I + A A^T with A = d^-1/2 W, its rows times d^1/2.  (*batch, n, n)"""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        a = self._unbroadcasted_cov_factor / root
        unit = named.eye(self._event_shape[0], dtype=a.dtype, device=a.device)
        return self._whole(root * linalg.cholesky(unit + a @ a.mT))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """(*batch, n, n)"""
        w = self._unbroadcasted_cov_factor
        return self._whole(w @ w.mT + named.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def _inner(self) -> Tensor:
        """B with the inverse of the covariance diag(1 / d) - B^T B.  (*, m, n)"""
        scaled = self._unbroadcasted_cov_factor / self._unbroadcasted_cov_diag.unsqueeze(-1)
        return linalg.solve_triangular(self._capacitance_tril, scaled.mT, upper=False)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance.  (*batch, n, n)"""
        inner = self._inner
        return self._whole(named.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - inner.mT @ inner)

    def half_log_det(self) -> Tensor:
        """Half of the logarithm of the covariance's determinant.  -> (*)"""
        return half_log_det(self._capacitance_tril) + 0.5 * self._unbroadcasted_cov_diag.log().sum(-1)

    def squared_mahalanobis(self, x: Tensor) -> Tensor:
        """x^T covariance^-1 x = x^T d^-1 x - |B x|^2.  (*, n) -> (*)"""
        along = (self._inner @ x.unsqueeze(-1)).squeeze(-1)
        return (x.square() / self._unbroadcasted_cov_diag).sum(-1) - along.square().sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = standard_normal(Size((*shape[:-1], self.cov_factor.shape[-1])), self.loc)
        each = standard_normal(shape, self.loc)
        shared = (self._unbroadcasted_cov_factor @ few.unsqueeze(-1)).squeeze(-1)
        return self.loc + shared + self._unbroadcasted_cov_diag.sqrt() * each

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        distance = self.squared_mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self.half_log_det()

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self.half_log_det()
        return entropy.expand(self._batch_shape)


def _check_shapes(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> Size:
    """The shape of one vector.  Raises ValueError for parameters that do not fit it."""
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    if cov_factor.dim() < 2:
        raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
    event = loc.shape[-1:]
    if cov_factor.shape[-2:-1] != event:
        raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m, got {cov_factor.shape}")
    if cov_diag.shape[-1:] != event:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event}, got {cov_diag.shape}")
    return Size(event)
