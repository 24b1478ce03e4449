"""Values within tuples, lists and dictionaries: mapped and listed, as programs around `autograd.Function` do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rushlight.tensor import Tensor

__all__ = ["_iter_tensors", "_nested_map"]


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """A function that puts `fn(value)` in the place of each value for which `condition` holds, however deep it lies.

    None stays.  condition_msg: what the ValueError about another value says of those that are taken.
    """

    def mapped(given: Any) -> Any:
        if condition(given):
            return fn(given)
        if given is None:
            return None
        if isinstance(given, (list, tuple)):
            found = [mapped(x) for x in given]
            return type(given)(*found) if hasattr(given, "_fields") else type(given)(found)
        if isinstance(given, Mapping):
            return {key: mapped(value) for key, value in given.items()}
        said = f": expected {condition_msg}, or tuples, lists and dictionaries of them" if condition_msg else ""
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {type(given).__name__}{said}"
        )

    return mapped


def _iter_tensors(x: object, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in `x`, however deep they lie in tuples, lists and other iterables."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, (list, tuple, set)):
        for inner in x:
            yield from _iter_tensors(inner, only_requiring_grad)
