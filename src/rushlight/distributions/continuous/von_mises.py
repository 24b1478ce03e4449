"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, special
from rushlight.engine.modes import no_grad
from rushlight.ops.random.von_mises_sample import von_mises
from rushlight.tensor import Tensor

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles in radians around `loc`: the density is exp(c cos(x - loc)) / (2 pi I0(c)) for the `concentration` c.

    Samples lie in [-pi, pi) and carry no gradients; any real number is an angle.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _batched = ("loc", "concentration")
    mean: Tensor = forwarded("loc", "The direction of the mean on the circle.")
    mode: Tensor = forwarded("loc")

    def __init__(self, loc: Any, concentration: Tensor, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def log_prob(self, value: Any) -> Tensor:
        """c (cos(x - loc) - 1) - log(2 pi) - log(exp(-c) I0(c)): of large concentrations, too, a small difference."""
        self._check(value)
        c = self.concentration
        return c * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - special.i0e(c).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return von_mises(self.loc.expand(shape), self.concentration.expand(shape))

    @property
    def variance(self) -> Tensor:
        """On the circle: 1 - I1(c) / I0(c)."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)
