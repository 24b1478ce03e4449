"""What a rehearsal leaves as it is found: what modules have of their own, and generators of random numbers."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rushlight.basics.handles import Hooks
from rushlight.generator import default_generator

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

CONTAINERS = (dict, OrderedDict, defaultdict, Hooks, list, set, deque)
LOOKED_INTO = 1000  # entries up to which what is in a container is looked at, too


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the default generator as it is found, and those of Python and NumPy, where they are in use."""
    draws, numbers = sys.modules.get("random"), sys.modules.get("numpy.random")
    former = (
        default_generator.get_state(),
        None if draws is None else draws.getstate(),
        None if numbers is None else numbers.get_state(),
    )
    try:
        yield
    finally:
        default_generator.set_state(former[0])
        if draws is not None:
            draws.setstate(former[1])
        if numbers is not None:
            numbers.set_state(former[2])


@contextmanager
def kept_modules(model: Module) -> Iterator[None]:
    """Leave what modules have as it is found: a forward may count its calls, or keep what it made, which is a stand-in."""
    former = [(m, m.__class__, dict(m.__dict__), contents(m.__dict__)) for m in model.modules()]
    try:
        yield
    finally:
        for module, cls, attributes, containers in former:
            module.__class__ = cls  # of lazy ones, another now
            module.__dict__.clear()
            module.__dict__.update(attributes)
            for container, was in containers:
                container.clear()
                (container.extend if isinstance(was, (list, deque)) else container.update)(was)


def contents(attributes: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The containers among values, and in those that are not long, with a copy of each."""
    found: dict[int, tuple[Any, Any]] = {}
    waiting = list(attributes.values())
    while waiting:
        x = waiting.pop()
        if type(x) not in CONTAINERS or id(x) in found:
            continue
        found[id(x)] = x, x.copy()
        if len(x) <= LOOKED_INTO:
            waiting += x.values() if isinstance(x, dict) else x
    return list(found.values())
