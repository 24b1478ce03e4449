"""``torch._functorch.make_functional``: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.compat.functorch import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from rushlight.ops.shape.join import stack

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functional_init",
           "functional_init_with_buffers", "make_functional", "make_functional_deprecated_v1", "make_functional_with_buffers",
           "make_functional_with_buffers_deprecated_v1"]  # fmt: skip

Values = tuple[Any, ...]


def make_functional_deprecated_v1(model: Any) -> tuple[Values, Callable[[Any, Any], Any], tuple[str, ...]]:
    """The parameters of a module without buffers, a function of (parameters, arguments), and their names.

    Raises RuntimeError if it has buffers.
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional_deprecated_v1(model): `model` has buffers: make_functional_with_buffers_deprecated_v1 takes it"
        )
    function, params = make_functional(model)
    return params, lambda weights, data: function(weights, *data), tuple(function.names)


def make_functional_with_buffers_deprecated_v1(
    model: Any,
) -> tuple[Values, Values, Callable[[Any, Any, Any], Any], tuple[str, ...], tuple[str, ...]]:
    """The parameters and the buffers of a module, a function of (parameters, buffers, arguments), and the names of both."""
    function, params, buffers = make_functional_with_buffers(model)
    return (
        params,
        buffers,
        lambda weights, kept, data: function(weights, kept, *data),
        tuple(function.names),
        tuple(function.buffers),
    )


def _stacked(states: list[Values]) -> Values:
    """Tensors of several models, one beside the other."""
    return tuple(stack(list(parts)).detach() for parts in zip(*states, strict=True))


def _count(ensemble_shape: tuple[int, ...]) -> int | None:
    """How many models are asked for; None where it is one that is not stacked.  Raises ValueError for less than 1, and for a grid."""
    if len(ensemble_shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if ensemble_shape and ensemble_shape[0] <= 0:
        raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
    return ensemble_shape[0] if ensemble_shape else None


def functional_init(
    model_class: type, ensemble_shape: tuple[int, ...] = (), device: Any = "cpu"
) -> Callable[..., tuple[Any, ...]]:
    """A function that makes a model, or several, of its arguments: what `make_functional_deprecated_v1` gives, parameters stacked."""

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        count = _count(ensemble_shape)
        made = [make_functional_deprecated_v1(model_class(*args, **kwargs).to(device)) for _ in range(count or 1)]
        weights, function, names = made[0]
        return (weights if count is None else _stacked([state for state, _, _ in made])), function, names

    return wrapped


def functional_init_with_buffers(
    model_class: type, ensemble_shape: tuple[int, ...] = (), device: Any = "cpu"
) -> Callable[..., tuple[Any, ...]]:
    """As `functional_init`, of models with buffers."""

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        count = _count(ensemble_shape)
        made = [
            make_functional_with_buffers_deprecated_v1(model_class(*args, **kwargs).to(device))
            for _ in range(count or 1)
        ]
        weights, buffers, function, names, kept = made[0]
        if count is not None:
            weights, buffers = _stacked([state[0] for state in made]), _stacked([state[1] for state in made])
        return weights, buffers, function, names, kept

    return wrapped
