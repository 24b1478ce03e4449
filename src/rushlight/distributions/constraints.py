"""Sets of values, each with a test of membership: what parameters and samples of distributions may be.

A constraint has `check(value)`, `is_discrete`, and `event_dim`, the number of dimensions that make up one element of the
set: a vector on the simplex is one element of 1 dimension.

>>> import rushlight as torch
>>> from rushlight.distributions import constraints
>>> constraints.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]]))
tensor([ True, False])
>>> constraints.integer_interval(0, 3)
IntegerInterval(lower_bound=0, upper_bound=3)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.dtypes import finfo
from rushlight.dispatch.named import linalg, named
from rushlight.tensor import Tensor

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
           "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
           "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
           "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
           "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack",
           "symmetric", "unit_interval"]  # fmt: skip


class Constraint:
    """A set of values.  Subclasses define `check`."""

    is_discrete: Any = False  # whether its elements lie apart
    event_dim: Any = 0  # how many dimensions on the right make up one element

    def check(self, value: Tensor) -> Tensor:
        """Whether each element is in the set.  value: (*batch, *event) -> (*batch), bool"""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Bounded(Constraint):
    """A set between bounds, which are numbers or tensors."""

    bounds: tuple[str, ...] = ("lower_bound",)
    lower_bound: Any
    upper_bound: Any

    def __init__(self, *values: Any, **named_values: Any):
        given = dict(zip(self.bounds, values)) | named_values
        if set(given) != set(self.bounds) or len(values) > len(self.bounds):
            raise TypeError(f"{type(self).__name__.removeprefix('_')} takes {', '.join(self.bounds)}")
        for name in self.bounds:
            setattr(self, name, given[name])
        super().__init__()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.bounds)
        return f"{super().__repr__()[:-1]}{shown})"


class _Dependent(Constraint):
    """A set that depends on parameters, and is known for an instance of a distribution alone."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        """Whether its elements lie apart.  Raises NotImplementedError where that depends too."""
        return bool(self._known(self._is_discrete, "is_discrete"))

    @property
    def event_dim(self) -> int:
        """How many dimensions make up one element.  Raises NotImplementedError where that depends too."""
        return int(self._known(self._event_dim, "event_dim"))

    def _known(self, value: object, name: str) -> Any:
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """The same with more of it known."""
        discrete = self._is_discrete if is_discrete is NotImplemented else is_discrete
        return _Dependent(is_discrete=discrete, event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that gives an instance's constraint, and on the class is a dependent constraint itself."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> _DependentProperty:  # type: ignore[override]
        """As a decorator with arguments."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: object) -> bool:
    """Whether a constraint depends on parameters."""
    return isinstance(constraint, _Dependent)


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors with a single 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        binary = (value == 0) | (value == 1)
        return binary.all(-1) & (value.sum(-1) == 1)


def _whole(value: Any, inside: Any) -> Tensor:
    """Whether numbers that are inside of bounds, or not, are whole too, as integers are."""
    return (value % 1 == 0) & inside if value.is_floating_point() or value.is_complex() else inside


class _IntegerInterval(_Bounded):
    """Whole numbers from lower_bound to upper_bound, both included."""

    is_discrete = True
    bounds = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, (self.lower_bound <= value) & (value <= self.upper_bound))


class _IntegerGreaterThan(_Bounded):
    """Whole numbers from lower_bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, value >= self.lower_bound)


class _Real(Constraint):
    """All but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_Bounded):
    """(lower_bound, inf]"""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    """[lower_bound, inf]"""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """[-inf, upper_bound)"""

    bounds = ("upper_bound",)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    """[lower_bound, upper_bound]"""

    bounds = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """[lower_bound, upper_bound)"""

    bounds = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of non-negative numbers that sum to 1, within 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of counts that sum to upper_bound or less."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: their rows have length 1."""

    def check(self, value: Tensor) -> Tensor:
        slack = finfo(value.dtype).eps * value.size(-1) * 10  # ten roundings an element
        unit = ((value.detach() * value.detach()).sum(-1).sqrt() - 1).abs().le(slack).all(-1)
        return super().check(value) & unit


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return named.full(value.shape[:-2], square, dtype=dtypes.bool)


class _Symmetric(_Square):
    """Square matrices that equal their transposes, within 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        return named.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1) if square.all() else square


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


class _IndependentConstraint(Constraint):
    """The set whose elements are arrays of elements of another one: `reinterpreted_batch_ndims` dimensions more."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        """As the base."""
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        """Those of the base and the reinterpreted ones."""
        return int(self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        ok = self.base_constraint.check(value)
        if ok.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return ok.flatten(ok.dim() - self.reinterpreted_batch_ndims).all(-1) if self.reinterpreted_batch_ndims else ok

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: what some component may give.  base_constraint: that of the components, batched."""

    def __init__(self, base_constraint: Any):
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        """As the components."""
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        """As the components."""
        return int(self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        apart = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(apart).any(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Stack(Constraint):
    """Each slice along `dim` in a set of its own."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0):
        self.cseq, self.dim = list(cseq), dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        """Whether any of them is."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        """The largest, and one more where `dim` counts from the right within it."""
        dim = max(c.event_dim for c in self.cseq)
        return int(dim + 1 if self.dim + dim < 0 else dim)

    def check(self, value: Tensor) -> Tensor:
        parts: Any = value.unbind(self.dim)
        return named.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Cat(_Stack):
    """Stretches along `dim`, of `lengths` elements, each in a set of its own."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None):
        super().__init__(cseq, dim)
        self.lengths = list(lengths or [1] * len(self.cseq))

    @property
    def event_dim(self) -> int:
        """The largest."""
        return int(max(c.event_dim for c in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        parts: Any = value.split(self.lengths, self.dim)
        return named.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
