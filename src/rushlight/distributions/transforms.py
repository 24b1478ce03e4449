"""Invertible maps of random variables, with the logarithm of their Jacobian's determinant.

>>> import rushlight as torch
>>> from rushlight.distributions.transforms import AffineTransform, ComposeTransform, ExpTransform
>>> t = ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])
>>> x = torch.tensor(0.5)
>>> y = t(x)
>>> y, t.inv(y), t.log_abs_det_jacobian(x, y)
(tensor(2.7183), tensor(0.5000), tensor(1.6931))
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from numbers import Number
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.basics.size import Size
from rushlight.dispatch.named import linalg, named
from rushlight.distributions import constraints
from rushlight.distributions.joined_transforms import CatTransform, StackTransform
from rushlight.distributions.transform import Transform, _InverseTransform
from rushlight.distributions.utils import (
    broadcast_all,
    eps_of,
    functional,
    sum_rightmost,
    tiny_of,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from rushlight.tensor import Tensor

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
           "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
           "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
           "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
           "_InverseTransform", "identity_transform"]  # fmt: skip


class ComposeTransform(Transform):
    """Several maps after one another, the first of `parts` first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        super().__init__(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Of the first, with as many dimensions in an event as the parts after it need."""
        if not self.parts:
            return constraints.real
        first, needed = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            needed = max(needed + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        more = needed - first.event_dim
        return constraints.independent(first, more) if more else first

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """Of the last, with as many dimensions in an event as the parts before it make."""
        if not self.parts:
            return constraints.real
        last, made = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            made = max(made + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        more = made - last.event_dim
        return constraints.independent(last, more) if more else last

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all of them are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return reduce(operator.mul, (part.sign for part in self.parts), 1)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return reduce(lambda value, part: part(value), self.parts, x)

    def _inverse(self, y: Tensor) -> Tensor:
        return reduce(lambda value, part: part.inv(value), reversed(self.parts), y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over the parts, each of them over the dimensions that belong to the whole's event."""
        if not self.parts:
            return named.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, points, points[1:]):
            jacobian = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(jacobian, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return reduce(operator.add, terms)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return reduce(lambda s, part: part.forward_shape(s), self.parts, Size(shape))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return reduce(lambda s, part: part.inverse_shape(s), reversed(self.parts), Size(shape))

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


identity_transform = ComposeTransform([])


def _check_dims(transform: Transform, x: Tensor, side: Any) -> None:
    """Raise ValueError where a tensor has fewer dimensions than one element."""
    if x.dim() < side.event_dim:
        raise ValueError(f"{transform!r}: expected a tensor of {side.event_dim} or more dimensions, got {x.dim()}")


class IndependentTransform(Transform):
    """`base_transform` with `reinterpreted_batch_ndims` more dimensions in an event: its Jacobian is summed over them."""

    bijective: bool = forwarded("base_transform.bijective", "As the base.")
    sign: Any = forwarded("base_transform.sign")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The base's, of more dimensions."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The base's, of more dimensions."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x: Tensor) -> Tensor:
        _check_dims(self, x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _check_dims(self, y, self.codomain)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """The last dimensions, of `in_shape`, as `out_shape`.  Raises ValueError for different numbers of elements."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: in_shape, out_shape have different numbers of elements: {tuple(in_shape)}, {tuple(out_shape)}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Real arrays."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Real arrays."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Sequence[int], old: Size, new: Size) -> Size:
    """A shape with other last dimensions.  Raises ValueError where they are not `old`."""
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    kept = len(shape) - len(old)
    if tuple(shape[kept:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {tuple(shape[kept:])} but got {tuple(old)}")
    return Size((*shape[:kept], *new))


class ExpTransform(Transform):
    """y = exp(x)."""

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent, for positive x."""

    domain, codomain = constraints.positive, constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return Size(named.broadcast_shapes(tuple(shape), tuple(self.exponent.shape)))

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid, kept off 0 and 1 by the smallest steps of the dtype.  (*) -> (*)"""
    return x.sigmoid().clamp(min=tiny_of(x), max=1 - eps_of(x))


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)), kept apart from 0 and 1; the inverse is the logit."""

    domain, codomain = constraints.real, constraints.unit_interval
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = y.clamp(min=tiny_of(y), max=1 - eps_of(y))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.logsigmoid(x) + functional.logsigmoid(-x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return functional.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.logsigmoid(x)


class TanhTransform(Transform):
    """y = tanh(x).  Far from 0 the inverse is not exact: with `cache_size=1` the x that made y is kept."""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log(1 - tanh(x)^2) = 2 (log 2 + log sigmoid(-2 x) + x), without a difference of what is nearly 1."""
        return 2 * (math.log(2.0) + functional.logsigmoid(-2 * x) + x)


class AbsTransform(Transform):
    """y = |x|, which is not bijective; its inverse takes y."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x, elementwise; `event_dim` says how many dimensions make up one element."""

    bijective = True
    event_dim: int = forwarded("_event_dim", "How many dimensions make up one element.")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Real numbers, or arrays."""
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, AffineTransform) and _equal(self.loc, other.loc)
                and _equal(self.scale, other.scale))  # fmt: skip

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            return int(self.scale > 0) - int(self.scale < 0)  # type: ignore[operator]
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Number):
            each = named.full_like(x, math.log(abs(self.scale)))  # type: ignore[arg-type]
        else:
            each = self.scale.abs().log()
        shape = named.broadcast_shapes(tuple(x.shape), tuple(each.shape))
        return sum_rightmost(each.expand(shape), self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        parts = [tuple(getattr(v, "shape", ())) for v in (self.loc, self.scale)]
        return Size(named.broadcast_shapes(tuple(shape), *parts))

    inverse_shape = forward_shape


def _equal(a: object, b: object) -> bool:
    """Whether numbers or tensors are equal everywhere."""
    same = a == b
    return bool(same if isinstance(same, bool) else same.all())


class SoftmaxTransform(Transform):
    """y = softmax(x), which is not bijective; its inverse takes log y."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _vector(shape, 0)

    inverse_shape = forward_shape


def _vector(shape: Sequence[int], more: int) -> Size:
    """The shape of vectors with `more` elements.  Raises ValueError for a shape without dimensions."""
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return Size((*shape[:-1], shape[-1] + more))


class StickBreakingTransform(Transform):
    """K - 1 real numbers to K probabilities: each takes a share, by its sigmoid, of what those before it left.

    The shares of x = 0 are equal (the Stan reference manual, chapter 10, unit simplex).
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _shares(self, x: Tensor) -> Tensor:
        """Logits of the shares."""
        left = x.shape[-1] - named.arange(x.shape[-1], dtype=x.dtype, device=x.device)
        return x - left.log()

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(self._shares(x))
        left = (1 - z).cumprod(-1)
        return functional.pad(z, [0, 1], value=1.0) * functional.pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = (1 - y[..., :-1].cumsum(-1)).clamp(min=tiny_of(y))
        count = left.shape[-1] - named.arange(left.shape[-1], dtype=y.dtype, device=y.device)
        return y[..., :-1].log() - left.log() + count.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shares = self._shares(x)
        return (functional.logsigmoid(-shares) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _vector(shape, 1)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return _vector(shape, -1)


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 real numbers to the Cholesky factor of a correlation matrix.  (*, n (n - 1) / 2) -> (*, n, n)

    Their tanh, row by row, are shares: an element is its share of the root of what those before it in the row left of 1
    (the Stan reference manual, chapter 10, Cholesky factors of correlation matrices).
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        slack = eps_of(x)
        shares = vec_to_tril_matrix(x.tanh().clamp(min=slack - 1, max=1 - slack), diag=-1)
        left = (1 - shares.square()).sqrt().cumprod(-1)
        unit = named.eye(shares.shape[-1], dtype=x.dtype, device=x.device)
        return (shares + unit) * functional.pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = functional.pad(1 - y.square().cumsum(-1)[..., :-1], [1, 0], value=1.0)
        shares = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (shares.log1p() - (-shares).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Half of the logarithms of what was left, and those of 1 - tanh^2."""
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) + TanhTransform().log_abs_det_jacobian(x, None).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones with a positive diagonal: exp of the diagonal, zeros above."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + named.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + named.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones: L L^T of what LowerCholeskyTransform gives."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x)."""

    bijective, codomain, sign = True, constraints.unit_interval, +1
    domain: Any = forwarded("distribution.support", "The support of the distribution.")

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
