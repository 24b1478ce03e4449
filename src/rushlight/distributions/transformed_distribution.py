"""Distributions of what a map makes of a random variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.independent import Independent
from rushlight.distributions.transform import Transform
from rushlight.distributions.transforms import ComposeTransform
from rushlight.distributions.utils import sum_rightmost
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__ = ["TransformedDistribution"]


def _listed(transforms: Any) -> list[Transform]:
    """The maps as a list.  Raises ValueError for anything else."""
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(
            f"TransformedDistribution: transforms must be a Transform or list of them, but was {transforms!r}"
        )
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError(f"TransformedDistribution: transforms holds what is no Transform: {transforms!r}")
    return transforms


def _together(base: Distribution, ndims: int) -> Distribution:
    """`base` with so many dimensions of its batch as part of the event."""
    return Independent(base, ndims) if ndims > 0 else base


class TransformedDistribution(Distribution):
    """y = t(x) for x of `base_distribution` and one or several `transforms`, the first of them first.

    log p(y) is log p(x) - log |dy/dx|. Raises ValueError where the base has fewer dimensions than the maps need.

    >>> import rushlight as torch
    >>> from rushlight.distributions import Normal, SigmoidTransform, TransformedDistribution
    >>> logit_normal = TransformedDistribution(Normal(0.0, 1.0), [SigmoidTransform()])
    >>> logit_normal.log_prob(torch.tensor(0.5)), logit_normal.icdf(torch.tensor(0.5))
    (tensor(0.4674), tensor(0.5000))
    """

    arg_constraints: Any = {}
    _batched = ("base_dist",)
    has_rsample: bool = forwarded("base_dist.has_rsample", "As the base.")

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None):
        self.transforms = _listed(transforms)
        whole, base = ComposeTransform(self.transforms), base_distribution
        shape = base.batch_shape + base.event_shape
        if len(shape) < whole.domain.event_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but "
                             f"got {shape}.")  # fmt: skip
        forward = whole.forward_shape(shape)
        needed = whole.inverse_shape(forward)
        if needed != shape:
            base = base.expand(needed[: len(base.batch_shape) + len(forward) - len(shape)])
        self.base_dist = _together(base, whole.domain.event_dim - len(base.event_shape))
        change = whole.codomain.event_dim - whole.domain.event_dim
        split = len(forward) - max(whole.codomain.event_dim, len(self.base_dist.event_shape) + change)
        super().__init__(forward[:split], forward[split:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(self._family(), _instance)
        new.transforms = self.transforms
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return self._finished(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self._event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _through(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _back(self, y: Any) -> Tensor:
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        event_dim, y, log_prob = len(self._event_shape), value, 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            y = x
        return log_prob + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _flipped(self, probability: Any) -> Tensor:
        """p where the maps increase, 1 - p where they decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value: Any) -> Tensor:
        self._check(value)
        return self._flipped(self.base_dist.cdf(self._back(value)))

    def icdf(self, value: Tensor | complex) -> Tensor:
        return self._through(self.base_dist.icdf(self._flipped(value)))
