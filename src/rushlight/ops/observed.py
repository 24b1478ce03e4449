"""Operators while somebody observes: the same work between two notes, on the fast path where that is the usual one."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from rushlight import events
from rushlight.events import INPLACE, OPERATOR
from rushlight.ops import call
from rushlight.ops.fast_source import first
from rushlight.state import modes, special


class _Usual:
    """What `state.special` is to a function that is not to look at modes."""

    count = 0


def operator(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """Run `op` and tell the observers of this thread, the usual one of them without detours."""
    watchers = modes.observers
    if special.everywhere:
        watchers += special.everywhere
    if len(watchers) != 1:
        return events.observed(OPERATOR, op, inputs, statics, run, op, inputs, statics)
    watcher, result = watchers[0], None
    token = watcher.begin(OPERATOR, op, inputs, statics)
    try:
        if special.count != special.observing:
            result = call.apply(op, inputs, statics, False)
        else:
            result = (op.unwatched or unwatched(op))(*inputs, *statics)
        return result
    finally:
        watcher.end(OPERATOR, op, inputs, statics, token, result)


def run(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """What `op` does when nobody observes: its fast path if observers are all that is unusual."""
    if special.count != special.observing:
        return call.apply(op, inputs, statics, False)
    return (op.unwatched or unwatched(op))(*inputs, *statics)


def unwatched(op: Any) -> Any:
    """The public function of `op` as it runs in the usual modes: it neither looks at them nor tells observers.

    It is kept as `op.unwatched`.
    """
    public, count = op.call, len(op.tensors)

    def general(*values: Any) -> Any:
        return call.apply(op, values[:count], values[count:], False)

    def slow(op: Any, inputs: tuple[Any, ...], out: Any, statics: tuple[Any, ...] = ()) -> Any:
        return call.apply(op, inputs, statics, False)

    op.unwatched = general
    scope = getattr(public, "__globals__", {})
    if "write" in scope and scope.get("call") is public:
        if public.__code__ is first.__code__:
            scope["write"]()
        op.unwatched = FunctionType(public.__code__, {**scope, "special": _Usual, "slow": slow}, op.name)
        op.unwatched.__kwdefaults__ = public.__kwdefaults__
    return op.unwatched


def inplace(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """Run the in-place form of `op` and tell the observers."""
    return events.observed(INPLACE, op, inputs, statics, call.apply_inplace, op, inputs, statics, False)


call.observed = sys.modules[__name__]
