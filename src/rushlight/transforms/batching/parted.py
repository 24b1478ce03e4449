"""Functions of tensors with tangents as functions of what these are made of.

What has a node of its own runs again, and is differentiated, after the levels of forward mode that its tensors had tangents
of have ended. So it takes values and tangents apart, as inputs beside each other, gives those of its results, and makes
tensors with tangents of them in levels of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import Spec, tree_flatten, tree_unflatten
from rushlight.ops.shape.reshape import reshape_op
from rushlight.tensor import ITSELF, Tensor
from rushlight.transforms.dual import DualLevel


class Parted:
    """`fn`, of a tuple of trees, as a function of a list: of the parts of every leaf (see `parts_of`), to those of its results.

    spec: the structure of the tuple; count: of how many levels the leaves have tangents.
    results: the structure of what `fn` returned last.
    """

    def __init__(self, fn: Callable[..., Any], spec: Spec, count: int):
        self.fn, self.spec, self.count = fn, spec, count
        self.results: Any = None

    def __call__(self, parts: list[Any]) -> list[Any]:
        with entered(self.count) as duals:
            found, self.results = tree_flatten(self.fn(*tree_unflatten(made_of(duals, parts), self.spec)))
            return [part for x in found for part in parts_of(duals, x)]

    def of_values(self, parts: list[Any]) -> list[Any]:
        """The results for the values alone, each in the place of its value, with None for its tangents."""
        step = 2**self.count
        found, _ = tree_flatten(self.fn(*tree_unflatten(parts[::step], self.spec)))
        return [part for x in found for part in (x, *[None] * (step - 1))]


def duals_inside(level: object) -> list[DualLevel]:
    """The levels of forward mode inside of a level, from outside in.  Those outside of it are of the tensors of all samples,
    and follow them through every operator."""
    if not modes.forward_grad:
        return []
    return [x for x in modes.levels[modes.levels.index(level) + 1 :] if isinstance(x, DualLevel)]


def parts_of(duals: list[DualLevel], x: Any, whole: bool = False) -> list[Any]:
    """The value and the tangents of a leaf at some levels, given from outside in: of n levels, 2^n parts.

    Those of its value, and then those of its tangent at the innermost level; None for a tangent that it has not.
    whole: parts that have tangents of the levels keep them.
    """
    if not duals:
        return [x]
    *rest, inner = duals
    tangent = inner.tangent_of(x) if isinstance(x, Tensor) else None
    return parts_of(rest, x if whole else inner.value(x), whole) + parts_of(rest, tangent, whole)


def made_of(duals: list[DualLevel], parts: list[Any]) -> list[Any]:
    """The leaves that parts are of."""
    step = 2 ** len(duals)
    return [joined(duals, parts[k : k + step]) for k in range(0, len(parts), step)]


def joined(duals: list[DualLevel], parts: list[Any]) -> Any:
    """The leaf with these parts."""
    if not duals:
        return parts[0]
    *rest, inner = duals
    half = len(parts) // 2
    value, tangent = joined(rest, parts[:half]), joined(rest, parts[half:])
    if tangent is None:
        return value
    made = reshape_op(value, value._array.shape)
    made._dual_base = ITSELF
    inner.give(made, tangent)
    return made


@contextmanager
def entered(count: int) -> Iterator[list[DualLevel]]:
    """New levels of forward mode inside of all others, at work whatever the mode outside says: a backward may run there."""
    duals = [DualLevel() for _ in range(count)]
    for dual in duals:
        dual.of_function = True
    try:
        with Setting("forward_grad", True), Setting("levels", (*modes.levels, *duals)):
            yield duals
    finally:
        for dual in duals:
            dual.end()
