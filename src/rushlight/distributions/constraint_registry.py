"""From real numbers into a constraint's set: what an unconstrained optimizer needs.

>>> import rushlight as torch
>>> from rushlight.distributions import constraints, transform_to
>>> transform_to(constraints.interval(1.0, 3.0))(torch.tensor([-100.0, 0.0, 100.0]))
tensor([1.0000, 2.0000, 3.0000])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from rushlight.distributions import constraints, transforms
from rushlight.distributions.constraints import (
    Constraint,
    _CorrCholesky,
    _GreaterThan,
    _GreaterThanEq,
    _HalfOpenInterval,
    _IndependentConstraint,
    _Interval,
    _LessThan,
    _LowerCholesky,
    _PositiveDefinite,
    _Real,
    _Simplex,
)

if TYPE_CHECKING:
    from rushlight.distributions.transforms import (
        ComposeTransform,
        CorrCholeskyTransform,
        IndependentTransform,
        LowerCholeskyTransform,
        PositiveDefiniteTransform,
        SoftmaxTransform,
        StickBreakingTransform,
    )

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """A table of transforms by the class of a constraint; calling it with a constraint gives the transform."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    @overload
    def register(self, constraint: object, factory: None = None) -> Callable[[Factory], Factory]: ...
    @overload
    def register(self, constraint: object, factory: Factory) -> Factory: ...
    def register(self, constraint: object, factory: Factory | None = None) -> Callable[..., Any]:
        """Enter factory(constraint) -> transform for a constraint or a class of them; without it, a decorator.

        Raises TypeError for what is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform.  Raises NotImplementedError where none is entered."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__.removeprefix('_')} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()  # transforms that are bijective
transform_to = ConstraintRegistry()  # transforms that need not be


def _both(*kinds: object) -> Callable[[Factory], Factory]:
    """Enter a factory in both tables."""

    def enter(factory: Factory) -> Factory:
        for registry in (biject_to, transform_to):
            for kind in kinds:
                registry.register(kind, factory)
        return factory

    return enter


@_both(constraints.real)
def _real(constraint: _Real) -> ComposeTransform:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _bijective_independent(constraint: _IndependentConstraint) -> IndependentTransform:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _independent(constraint: _IndependentConstraint) -> IndependentTransform:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: _GreaterThan | _GreaterThanEq) -> Any:
    bound = constraint.lower_bound
    exp = transforms.ExpTransform()
    if isinstance(bound, int | float) and bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(bound, 1)])


@_both(constraints.less_than)
def _below(constraint: _LessThan) -> ComposeTransform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: _HalfOpenInterval | _Interval) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, int | float) and low == 0 and isinstance(high, int | float) and high == 1:
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _bijective_simplex(constraint: _Simplex) -> StickBreakingTransform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _simplex(constraint: _Simplex) -> SoftmaxTransform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: _LowerCholesky) -> LowerCholeskyTransform:
    return transforms.LowerCholeskyTransform()


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: _CorrCholesky) -> CorrCholeskyTransform:
    return transforms.CorrCholeskyTransform()


def _enter_joined(registry: ConstraintRegistry) -> None:
    """Parts side by side: the transforms of the parts, side by side."""
    registry.register(
        constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)
    )
    registry.register(
        constraints.stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim)
    )


_enter_joined(biject_to)
_enter_joined(transform_to)


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: _PositiveDefinite) -> PositiveDefiniteTransform:
    return transforms.PositiveDefiniteTransform()
