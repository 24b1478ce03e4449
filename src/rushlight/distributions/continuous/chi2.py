"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.continuous.gamma import Gamma
from rushlight.tensor import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of `df` squares of standard normal variables; `df` need not be whole."""

    arg_constraints = {"df": constraints.positive}
    _batched = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom.  (*batch)"""
        return 2 * self.concentration
