"""Batches taken together as one event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.basics.size import Size
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import sum_rightmost

if TYPE_CHECKING:
    from rushlight.distributions.constraints import _IndependentConstraint
    from rushlight.tensor import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """`base_distribution` with the last `reinterpreted_batch_ndims` dimensions of its batch as part of the event.

    Raises ValueError where the batch has fewer.

    >>> import rushlight as torch
    >>> from rushlight.distributions import Independent, Normal
    >>> d = Independent(Normal(torch.zeros(5, 2), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(torch.zeros(5, 2)).shape
    (torch.Size([5]), torch.Size([2]), torch.Size([5]))
    """

    arg_constraints: Any = {}
    has_rsample: bool = forwarded("base_dist.has_rsample", "As the base.")
    mean: Tensor = forwarded("base_dist.mean")
    mode: Tensor = forwarded("base_dist.mode")
    variance: Tensor = forwarded("base_dist.variance")

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None):  # fmt: skip
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                             f"{reinterpreted_batch_ndims} vs {len(batch)}")  # fmt: skip
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        kept = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:kept], batch[kept:] + base_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Independent:
        new = self._get_checked_instance(Independent, _instance)
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(Size((*batch_shape, *inner)))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._finished(new, batch_shape)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """As the base, without dimensions that were reinterpreted."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> _IndependentConstraint:
        base, ndims = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, ndims) if ndims else base

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor | complex) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Independent.enumerate_support: the values of several variables together are not listed"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
