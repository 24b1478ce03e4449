"""Budgets that are awake though memory is not short, and such as wake anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import memory
from rushlight.kernels import allocator


@contextmanager
def awake(limit: int | str = "1 TB", **arguments: Any) -> Iterator[Any]:
    """A budget that looks on from the start."""
    with memory.budget(limit, **arguments) as budget:
        budget.pager.wake()
        yield budget


@contextmanager
def waking(after: int, spill: Any = None) -> Iterator[Any]:
    """A budget without a limit that wakes when `after` bytes more are in use than now, in the middle of whatever asks for them."""
    with memory.budget(memory.current() + after, spill) as budget:
        pager = budget.pager
        wake = pager.wake

        def woken() -> None:
            budget.room = (budget.room, allocator.limit(1 << 50, pager.make_room))
            pager.limit = 1 << 50
            wake()

        pager.wake = woken
        yield budget
