"""Observation points: what an observer is told of, free of cost while nobody observes.

An observer has two methods, called in the thread in which the thing happens:

    begin(kind, what, inputs, statics) -> token        just before it
    end(kind, what, inputs, statics, token, result)    just after it; `result` is None if it raised

An observer that is `passive` wants nothing to happen before; it has a method more, which says the same at once, with the
times from `time.perf_counter_ns`:

    note(kind, what, inputs, statics, start, stop, result)

One that is not passive, and does nothing with results and gradients that would have them in memory, says so: `looks` is False.

What goes on beside the thread that began it, a message among processes, is told at its end to observers that have a method for
it, in whichever thread sees the end:

    message(what, start, stop, shapes)

Operators that are not the package's own run through observers that have a method for it, which returns what `run()` does:

    around(operator, values, by_name, run) -> result

`kind` is one of the numbers below; `what` an operator, a node, a leaf tensor, a custom function or a name.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns as clock
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from rushlight.basics.state import modes, set_mode, special

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array

T = TypeVar("T")

OPERATOR = 0  # an operator is called: what is its declaration
INPLACE = 1  # as OPERATOR, its result written over its first input
FUNCTION = 2  # forward of a custom function: what is its class
ROOT = 3  # a backward run receives the gradient of a root: what is the edge
EVALUATE = 4  # a backward run evaluates a node, its hooks included: what is the node
NODE = 5  # within it, the node computes the gradients of its inputs
EVALUATE_LEAF = 6  # the gradient of a leaf is complete: its hooks, and then
LEAF = 7  # its accumulation: what is the leaf
MARK = 8  # a stretch of code: what is its name, and a text or None
DRAW = 9  # numbers are drawn: what is the name of the function


def observers() -> tuple[Any, ...]:
    """Who observes this thread."""
    return modes.observers + special.everywhere


def unseen(watchers: tuple[Any, ...]) -> bool:
    """Whether none of these observers looks at results and gradients."""
    return all(watcher.passive or not getattr(watcher, "looks", True) for watcher in watchers)


def begin(
    kind: int, what: Any, inputs: list[Any] | tuple[Any, ...] = (), statics: tuple[Any, ...] = ()
) -> list[tuple[Any, Any]]:
    """Tell the observers of this thread that something begins; give what this returns to `end`."""
    return [(watcher, watcher.begin(kind, what, inputs, statics)) for watcher in observers()]


def end(
    tokens: list[tuple[Any, Any]],
    kind: int,
    what: Any,
    inputs: list[Array | None] | tuple[Any, ...] = (),
    statics: tuple[Any, ...] = (),
    result: Any = None,
) -> None:
    """Tell the observers that it ended, the last one first."""
    for watcher, token in reversed(tokens):
        watcher.end(kind, what, inputs, statics, token, result)


def observed(
    kind: int,
    what: object,
    inputs: list[Any] | tuple[Any, ...],
    statics: tuple[Any, ...],
    run: Callable[..., T],
    *args: object,
) -> T:
    """The result of `run(*args)`, observed."""
    tokens, result = begin(kind, what, inputs, statics), None
    try:
        result = run(*args)
        return result
    finally:
        end(tokens, kind, what, inputs, statics, result)


def message(what: str, shapes: list[list[int]]) -> Callable[[], None] | None:
    """A message begins: what is to be called when it is seen to be done, None where nobody wants to know.  shapes: of its tensors"""
    told = [watcher.message for watcher in observers() if hasattr(watcher, "message")]
    if not told:
        return None
    start = clock()

    def done() -> None:
        for tell in told:
            tell(what, start, clock(), shapes)

    return done


def treated(how: str) -> None:
    """The gradients are treated between backward and step: observers that keep a list of such ways are told which."""
    for watcher in observers():
        if hasattr(watcher, "treatments"):
            watcher.treatments[how] = None


class Observation:
    """While active, `observer` is told what happens in this thread, or in all threads with `everywhere`."""

    def __init__(self, observer: Any, everywhere: bool = False):
        self.observer, self.everywhere = observer, everywhere

    def __enter__(self) -> Observation:
        if not self.everywhere:
            set_mode("observers", (*modes.observers, self.observer))
            return self
        with special.lock:
            special.everywhere = (*special.everywhere, self.observer)
            special.count += 1
            special.observing += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self.everywhere:
            set_mode("observers", tuple(x for x in modes.observers if x is not self.observer))
            return
        with special.lock:
            special.everywhere = tuple(x for x in special.everywhere if x is not self.observer)
            special.count -= 1
            special.observing -= 1
