"""Composed functions that look at values: inside vmap, where values differ from sample to sample, they run on each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight.basics.state import modes, special
from rushlight.basics.tree import tree_leaves
from rushlight.levels.batch import BatchedArray, DataDependent
from rushlight.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def per_sample(fn: F) -> F:
    """Decorate a function that looks at values; outside of vmap nothing changes."""

    @functools.wraps(fn)
    def outer(*args: Any, **kwargs: Any) -> Any:
        if not special.count or not modes.levels:
            return fn(*args, **kwargs)
        return attempt(fn, outer, args, kwargs)

    return outer  # type: ignore[return-value]


def level_of(args: list[Any] | tuple[Any, ...]) -> Any:
    """The innermost batched level that any tensor in a tree belongs to, None without one."""
    arrays = [x._array for x in tree_leaves(args) if isinstance(x, Tensor) and type(x._array) is BatchedArray]
    levels = [a.level for a in arrays if a.level in modes.levels]
    return max(levels, key=modes.levels.index) if levels else None


def attempt(fn: Callable[..., Any], again: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composed function; where it looked at values of batched tensors, `again` for each sample."""
    try:
        return fn(*args, **kwargs)
    except DataDependent:
        level = level_of((args, kwargs))
        if level is None:
            raise
    return level.by_samples(lambda a, k: again(*a, **k), (args, kwargs), fn.__name__)
