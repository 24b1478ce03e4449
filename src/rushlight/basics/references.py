"""How many references an object has, which differs between versions of Python: from 3.14 on a call adds none for its arguments."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from sys import getrefcount
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def untraced(count: Callable[P, R]) -> Callable[P, R]:
    """The function, during which no debugger looks on: before Python 3.13 one that reads a frame's variables holds them, too.

    What counts references once, and has all later counts compared with that, would take what others hold for its own.
    """

    @functools.wraps(count)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        tracer, profiler = sys.gettrace(), sys.getprofile()
        if tracer is None and profiler is None:
            return count(*args, **kwargs)
        sys.settrace(None)
        sys.setprofile(None)
        try:
            return count(*args, **kwargs)
        finally:
            sys.setprofile(profiler)
            sys.settrace(tracer)

    return run


class _Slot:
    """What holds an object."""

    __slots__ = ("held",)

    def __init__(self, held: object):
        self.held = held


def _counted(slot: _Slot) -> int:
    held = slot.held
    return getrefcount(held)


@untraced
def _held() -> int:
    return _counted(_Slot(object()))


HELD = _held()  # as a function counts them that has in a variable what one other object holds
