"""The base class of distributions: shapes, validation, and the interface that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from rushlight.basics.caller import warn
from rushlight.basics.size import Size
from rushlight.dispatch.operands import raw
from rushlight.distributions import constraints
from rushlight.distributions.constraints import Constraint
from rushlight.distributions.utils import lazy_property
from rushlight.engine.modes import no_grad
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.shared import is_unknown
from rushlight.tensor import Tensor, wrap

__all__ = ["Distribution"]


class Distribution:
    """A batch of probability distributions of one family.

    A sample has the shape sample_shape + batch_shape + event_shape: how many were asked for, the distributions side by
    side, and the dimensions of one draw. Parameters broadcast to batch_shape. Constructors check their parameters, and
    `log_prob` its argument, unless `validate_args` is False; they raise ValueError with the parameter, its constraint
    and its value.

    >>> import rushlight as torch
    >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
    >>> d
    Normal(loc: torch.Size([3]), scale: torch.Size([3]))
    >>> d.sample((2,)).shape
    torch.Size([2, 3])
    """

    has_rsample = False  # whether samples carry gradients to the parameters
    has_enumerate_support = False  # whether all values can be listed
    arg_constraints: Any = property(lambda self: self._lacks("arg_constraints"))  # {parameter: constraint}
    support: Any = property(lambda self: self._lacks("support"))  # the constraint that samples satisfy
    mean: Any = property(lambda self: self._lacks("mean"))
    variance: Any = property(lambda self: self._lacks("variance"))
    _validate_args = __debug__
    _batched: ClassVar[tuple[str, ...] | None] = None  # of the shape of the batch: tensors, distributions
    _handed_on: ClassVar[tuple[str, ...]] = ()  # what else it takes along

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check their arguments.  Raises ValueError for what is no bool."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args takes True or False, got: {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: bool | None = None):  # fmt: skip
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        """Raise ValueError for a parameter that does not satisfy its constraint."""
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warn(f"{type(self).__name__} has no arg_constraints, so its parameters are not checked: set arg_constraints, "
                          "to {} if there is nothing to check")  # fmt: skip
        for name, constraint in wanted.items():
            derived = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or derived:
                continue
            value = getattr(self, name)
            if not holds(constraint, value):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{_text(value)}"
                )

    def _lacks(self, name: str) -> Tensor:
        """Raise NotImplementedError for what this family does not have in closed form."""
        raise NotImplementedError(f"{type(self)} does not implement {name}")

    @property
    def batch_shape(self) -> Size:
        """The shape of distributions side by side."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def mode(self) -> Tensor:
        """The likeliest value.  -> (*batch, *event)"""
        return self._lacks("mode")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance.  -> (*batch, *event)"""
        return self.variance.sqrt()

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        """The same distributions, repeated to a larger batch_shape without copies of their parameters."""
        if self._batched is None:
            return self._lacks("expand")
        return self._expanded(self._family(), batch_shape, _instance, *self._batched)

    def _family(self) -> type[Any]:
        """The class that `expand` is for: subclasses of it with arguments of their own need one of their own."""
        return next(kind for kind in type(self).__mro__ if "_batched" in vars(kind))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Random draws without gradients.  -> (*sample_shape, *batch, *event)"""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Random draws that are differentiable by the parameters, if `has_rsample`.  -> (*sample_shape, *batch, *event)"""
        return self._lacks("rsample")

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)), an older name."""
        warn("sample_n(n) is an older name of sample((n,))", FutureWarning)
        return self.sample((n,))

    def log_prob(self, value: Tensor | complex) -> Tensor:
        """The logarithm of the density or of the probability.  (*sample, *batch, *event) -> (*sample, *batch)"""
        return self._lacks("log_prob")

    def cdf(self, value: Tensor | complex) -> Tensor:
        """The probability of a draw up to `value`.  (*sample, *batch) -> (*sample, *batch)"""
        return self._lacks("cdf")

    def icdf(self, value: Tensor | complex) -> Tensor:
        """The quantile: the inverse of `cdf`.  (*sample, *batch) -> (*sample, *batch)"""
        return self._lacks("icdf")

    def _along_batch(self, values: Tensor, expand: bool) -> Tensor:
        """Values before the dimensions of the batch: what `enumerate_support` gives.  (count, *event) -> (count, *batch, *event)"""
        ones = [1] * len(self._batch_shape)
        values = values.view(-1, *ones, *self._event_shape)
        return values.expand(-1, *self._batch_shape, *self._event_shape) if expand else values

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution.  -> (count, *batch, *event); without `expand`, the batch is of ones."""
        return self._lacks("enumerate_support")

    def entropy(self) -> Tensor:
        """Minus the expectation of log_prob.  -> (*batch)"""
        return self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """exp of the entropy.  -> (*batch)"""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """The shape of samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check(self, value: object) -> None:
        """`_validate_sample`, where arguments are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: object) -> None:
        """Raise ValueError where `value` does not fit the shapes, or is outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError(f"The value argument to log_prob must be a Tensor, got {type(value).__name__}")
        _check_shape(value.shape, self._batch_shape, self._event_shape)
        try:
            support = self.support
        except NotImplementedError:
            return
        if not holds(support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{_text(value)}"
            )

    def _get_checked_instance(self, cls: type[Any], _instance: object = None) -> Any:
        """An empty instance for `expand`.  Raises NotImplementedError where a subclass has other arguments."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"{type(self).__name__}, a subclass of {cls.__name__} with an __init__ of its own, needs "
                                      "an expand of its own")  # fmt: skip
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls: type[Any], batch_shape: Sequence[int], _instance: Self | None, *names: str) -> Self:
        """`expand` for a family whose parameters `names` all have the shape of the batch."""
        new = self._get_checked_instance(cls, _instance)
        for name in names:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        new.__dict__.update((name, self.__dict__[name]) for name in self._handed_on)
        return self._finished(new, batch_shape)

    def _finished(self, new: Any, batch_shape: Sequence[int]) -> Any:
        """An instance that `expand` made, with its shapes; its parameters were checked before."""
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        own = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        shown = ", ".join(f"{k}: {_text(v) if v.numel() == 1 else v.size()}" for k, v in own.items())
        return f"{type(self).__name__}({shown})"


def holds(constraint: Constraint, value: Tensor) -> bool:
    """Whether all of `value`, of every sample inside vmap, satisfies a constraint, as what an estimate does not compute does."""
    satisfied = raw(constraint.check(value))
    return is_unknown(satisfied) or bool(everything(satisfied).all())


def _text(value: Tensor) -> str:
    """A tensor's values; inside vmap those of all samples."""
    array = raw(value)
    whole = everything(array)
    return f"{value}" if whole is array else f"{wrap(whole)} (all samples)"


def _check_shape(shape: Sequence[int], batch: Size, event: Size) -> None:
    """Raise ValueError where a value of this shape does not broadcast with batch + event."""
    right = tuple(shape[len(shape) - len(event) :]) if len(event) else ()
    if right != tuple(event):
        raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {event}.")
    for i, j in zip(reversed(shape), reversed((*batch, *event))):
        if i != 1 and j != 1 and i != j:
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {Size((*batch, *event))}."
            )
