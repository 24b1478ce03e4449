"""Operators while somebody observes: the same work between two notes, on the fast path where that is the usual one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter_ns as clock
from types import FunctionType
from typing import TYPE_CHECKING, Any

from rushlight.basics import events
from rushlight.basics.events import INPLACE, OPERATOR
from rushlight.basics.state import modes, special
from rushlight.dispatch import call, fast_views
from rushlight.dispatch.quick import Usual, usual

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.tensor import Tensor


made_view: Callable[[Op, Tensor, Array, tuple[Any, ...]], Tensor] = FunctionType(
    fast_views.made_view.__code__, {**vars(fast_views), "special": Usual}, "made_view"
)  # as it is in the usual modes


def operator(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """Run `op` and tell the observers of this thread, the usual one of them without detours."""
    watchers = modes.observers
    if special.everywhere:
        watchers += special.everywhere
    if not watchers:
        return run(op, inputs, statics)
    if len(watchers) != 1 or not watchers[0].passive:
        return events.observed(OPERATOR, op, inputs, statics, run, op, inputs, statics)
    result = None
    start = clock()
    try:
        if special.count != special.observing:
            result = call.apply(op, inputs, statics, False)
        else:
            result = (op.unwatched or usual(op))(*inputs, *statics)
        return result
    finally:
        watchers[0].note(OPERATOR, op, inputs, statics, start, clock(), result)


def run(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """What `op` does when nobody observes: its fast path if observers are all that is unusual."""
    if special.count != special.observing:
        return call.apply(op, inputs, statics, False)
    return (op.unwatched or usual(op))(*inputs, *statics)


def inplace(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Tensor:
    """Run the in-place form of `op` and tell the observers."""
    watchers = modes.observers
    if special.everywhere or len(watchers) != 1 or not watchers[0].passive:
        return events.observed(INPLACE, op, inputs, statics, call.apply_inplace, op, inputs, statics, False)
    result = None
    start = clock()
    try:
        result = call.apply_inplace(op, inputs, statics, False)
        return result
    finally:
        watchers[0].note(INPLACE, op, inputs, statics, start, clock(), result)


def view(op: Op, of: Tensor, array: Array, statics: tuple[Any, ...]) -> Tensor:
    """`fast_views.made_view`, told to the observers: its array is there already, so that its time is short."""
    watchers = modes.observers
    if special.count != special.observing or special.everywhere or not all(w.passive for w in watchers):
        return call.apply(op, (of,), statics)
    if not watchers:
        return made_view(op, of, array, statics)
    start = clock()
    result = made_view(op, of, array, statics)
    stop = clock()
    for watcher in watchers:
        watcher.note(OPERATOR, op, (of,), statics, start, stop, result)
    return result


def joined(op: Op, along: Callable[..., Any], tensors: Sequence[Any], arrays: list[Any], dim: int) -> Tensor:
    """Tensors joined by the NumPy function `along` as by `op`, told to the observers."""

    def join() -> Tensor:
        result = along(arrays, dim)
        return fast_views.joined(op, tensors, result, (dim if dim >= 0 else dim + result.ndim,))

    return events.observed(OPERATOR, op, (tensors,), (dim,), join)


call.observed = sys.modules[__name__]
