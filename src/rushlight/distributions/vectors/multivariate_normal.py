"""The normal distribution of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import linalg, named
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import lazy_property, standard_normal
from rushlight.tensor import Tensor

__all__ = ["FORMS", "MultivariateNormal", "OfCovariance", "factor_of", "half_log_det", "squared_mahalanobis"]

FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def half_log_det(scale_tril: Tensor) -> Tensor:
    """Half of log det(L L^T).  L: (*, n, n), lower triangular -> (*)"""
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def squared_mahalanobis(scale_tril: Any, x: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x = |L^-1 x|^2.  L: (*b, n, n), x: (*sample, *batch, n) -> (*sample, *batch)

    Samples are the columns of one triangular solve, so that the factor is not copied for each.  b broadcasts to batch.
    """
    k = scale_tril.dim() - 2
    shape, split = x.shape, x.dim() - 1 - k
    columns = x.reshape(-1, *shape[split:]).movedim(0, -1)  # (*batch, n, samples)
    solved = linalg.solve_triangular(scale_tril, columns, upper=False)
    return solved.square().sum(-2).movedim(-1, 0).reshape(shape[:-1])


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of P.  (*, n, n) -> (*, n, n)

    P = R R^T with an upper triangular R, which is the Cholesky factor of P read backwards; then L = R^-T.
    """
    backwards = linalg.cholesky(precision.flip((-2, -1)))
    lower = backwards.flip((-2, -1)).mT
    unit = named.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(lower, unit.expand(precision.shape), upper=False)


class OfCovariance:
    """What distributions share that are given by one of three forms of an n x n matrix, here called the covariance.

    They compute with `_unbroadcasted_scale_tril`; the form that was given, and those that were asked for, are attributes.
    """

    _batch_shape: Any
    _event_shape: Any
    _unbroadcasted_scale_tril: Any

    def _take(self, name: str, matrix: Tensor, batch: Any) -> None:
        self.__dict__[name] = matrix.expand((*batch, -1, -1))

    def _take_from(self, other: Any, batch: Sequence[int]) -> None:
        """The matrices of `other`, expanded."""
        self._unbroadcasted_scale_tril = other._unbroadcasted_scale_tril
        for name in FORMS:
            if name in other.__dict__:
                self._take(name, other.__dict__[name], batch)

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, -1, -1))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular L with covariance L L^T.  (*batch, n, n)"""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """(*batch, n, n)"""
        factor = self._unbroadcasted_scale_tril
        return self._whole(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance.  (*batch, n, n)"""
        return self._whole(named.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(OfCovariance, Distribution):
    """Normal vectors of mean `loc`, by exactly one of covariance, precision and the covariance's Cholesky factor.

    loc: (*batch, n); the matrices: (*batch, n, n). The factor is what is computed with, and the quickest to give.
    Raises ValueError for none or several of them, and for matrices that are not positive definite.

    >>> import rushlight as torch
    >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), covariance_matrix=4 * torch.eye(2))
    >>> d.scale_tril.diagonal(), d.entropy()
    (tensor([2., 2.]), tensor(4.2242))
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    mean: Tensor = forwarded("loc")
    mode: Tensor = forwarded("loc")

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {k: v for k, v in zip(FORMS, (covariance_matrix, precision_matrix, scale_tril)) if v is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = next(iter(given.items()))
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = named.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self._take(name, matrix, batch)
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        new.loc = self.loc.expand((*batch_shape, -1))
        new._take_from(self, batch_shape)
        return self._finished(new, batch_shape)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor | complex) -> Tensor:
        self._check(value)
        factor = self._unbroadcasted_scale_tril
        distance = squared_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * n * (1 + math.log(2 * math.pi)) + half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance, from the matrix that is given."""
    if name == "scale_tril":
        return matrix
    return linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)
