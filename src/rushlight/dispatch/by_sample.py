"""Composed functions that look at values: inside vmap, where values differ from sample to sample, they run on each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight.basics.state import modes, special
from rushlight.basics.tree import tree_leaves
from rushlight.levels import Level, SampleLevel
from rushlight.levels.batch import BatchedArray, DataDependent
from rushlight.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def per_sample(fn: F) -> F:
    """Decorate a function that looks at values; outside of vmap nothing changes."""

    @functools.wraps(fn)
    def outer(*args: object, **kwargs: object) -> object:
        if not special.count or not modes.levels:
            return fn(*args, **kwargs)
        return attempt(fn, outer, args, kwargs)

    return outer  # type: ignore[return-value]


def level_of(args: list[Any] | tuple[Any, ...]) -> SampleLevel | None:
    """The innermost batched level that any tensor in a tree, or a tangent of one, belongs to, None without one."""
    found, tensors = None, [x for x in tree_leaves(args) if isinstance(x, Tensor)]
    for place, level in enumerate(modes.levels):
        duals = [dual for dual in modes.levels[place + 1 :] if hasattr(dual, "tangent_of")]
        for x in tensors:
            if belongs(x, level, duals):
                found = level
                break
    return found


def belongs(x: Tensor, level: Level, duals: list[Any]) -> bool:
    """Whether a tensor, or a tangent of it at one of the levels inside, is batched at a level."""
    array = x._array
    if type(array) is BatchedArray and array.level is level:
        return True
    return bool(duals) and any(belongs(t, level, duals) for dual in duals if (t := dual.tangent_of(x)) is not None)


def attempt(fn: Callable[..., Any], again: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composed function; where it looked at values of batched tensors, `again` for each sample."""
    try:
        return fn(*args, **kwargs)
    except DataDependent:
        level = level_of((args, kwargs))
        if level is None:
            raise
    return level.by_samples(lambda a, k: again(*a, **k), (args, kwargs), fn.__name__)
