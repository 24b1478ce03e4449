"""What families on the real numbers share that are moved by `loc` and stretched by `scale`."""

from __future__ import annotations

from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.basics.signatures import name_init
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.tensor import Tensor

__all__ = ["LocScale"]


class LocScale(Distribution):
    """loc + scale * x for a standard variable x; both parameters broadcast.  `loc` is the mean and mode unless said otherwise."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    mean: Any = forwarded("loc")
    mode: Tensor = forwarded("loc")

    def __init_subclass__(cls, **options: object) -> None:
        """Have errors about arguments name the class."""
        super().__init_subclass__(**options)
        name_init(cls)

    def __init__(self, loc: Any, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)
