"""What a recording says of a moment: who was alive, as what, made by whom.

Letters: E events, B blocks, C categories.  A moment is the number of an event: the state after it; -1 is the beginning.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, CATEGORY, FREE, PHASE, PHASES, Frame, Recording

TELLING = ("unknown", "temporary", "autograd_detail", "input", "activation", "gradient", "optimizer_state", "parameter")
"""Categories, the most telling last: what a block is remembered as."""


class Lives(NamedTuple):
    """When blocks live: from event `birth` (-1: before the first) until event `death` (E: longer than the recording)."""

    birth: np.ndarray
    death: np.ndarray


def lives(recording: Recording) -> Lives:
    """Birth and death of each block.  (B) int64 each"""
    birth = np.full(len(recording.size), -1, np.int64)
    death = np.full(len(recording.size), len(recording.time), np.int64)
    for action, column in ((ALLOC, birth), (FREE, death)):
        at = np.flatnonzero(recording.action == action)
        column[recording.block[at]] = at
    return Lives(birth, death)


def initial_categories(recording: Recording) -> np.ndarray:
    """Categories at the beginning: of blocks that were alive then, 0 for others.  (B) uint8"""
    found = np.zeros(len(recording.size), np.uint8)
    if recording.initial_category is not None:
        found[: recording.initial] = recording.initial_category
    return found


def before(recording: Recording) -> np.ndarray:
    """The category that the block of each event had before it, 0 where the event has none.  (E) uint8"""
    found = np.zeros(len(recording.time), np.uint8)
    at = np.flatnonzero(recording.block >= 0)
    at = at[np.argsort(recording.block[at], kind="stable")]
    blocks = recording.block[at]
    first = np.ones(len(at), bool)
    first[1:] = blocks[1:] != blocks[:-1]
    found[at[1:]] = recording.value[at[:-1]]
    found[at[first]] = initial_categories(recording)[blocks[first]]
    return found


def timeline(recording: Recording) -> np.ndarray:
    """Bytes alive by category, at the beginning and after each event.  (C, E + 1) int64"""
    events = len(recording.time)
    total = np.zeros((len(CATEGORIES), events + 1), np.int64)
    start = initial_categories(recording)[: recording.initial]
    total[:, 0] = np.bincount(start, recording.size[: recording.initial], len(CATEGORIES)).astype(np.int64)
    was = before(recording)
    gains = np.flatnonzero((recording.action == ALLOC) | (recording.action == CATEGORY))
    loses = np.flatnonzero((recording.action == FREE) | (recording.action == CATEGORY))
    # An event changes one category up and one down at most, so no place is met twice within either statement.
    total[recording.value[gains], gains + 1] += recording.size[recording.block[gains]]
    total[was[loses], loses + 1] -= recording.size[recording.block[loses]]
    return np.cumsum(total, axis=1, out=total)


def categories_at(recording: Recording, moment: int) -> np.ndarray:
    """The category of each block at a moment, or the last before it.  (B) uint8"""
    found = initial_categories(recording)
    told = np.flatnonzero((recording.action == ALLOC) | (recording.action == CATEGORY))
    told = told[: np.searchsorted(told, moment, side="right")]
    found[recording.block[told]] = recording.value[told]  # of several the last one stays
    return found


def most_telling(recording: Recording) -> np.ndarray:
    """The most telling category that each block ever had.  (B) uint8"""
    rank = np.array([TELLING.index(name) for name in CATEGORIES], np.uint8)
    best = rank[initial_categories(recording)]
    told = (recording.action == ALLOC) | (recording.action == CATEGORY)
    np.maximum.at(best, recording.block[told], rank[recording.value[told]])
    found: np.ndarray = np.argsort(rank).astype(np.uint8)[best]
    return found


def settled(recording: Recording) -> Recording:
    """The same in hindsight: each block is from birth what it is remembered as, and no category changes.

    Of what a moment later turns out to be a gradient, a picture says gradient from the start.
    """
    telling = most_telling(recording)
    stays = recording.action != CATEGORY
    action, block = recording.action[stays], recording.block[stays]
    value = recording.value[stays].copy()
    value[action == ALLOC] = telling[block[action == ALLOC]]
    return replace(
        recording, time=recording.time[stays], action=action, block=block, value=value,
        initial_category=telling[: recording.initial],
    )  # fmt: skip


def alive_at(recording: Recording, moment: int, found: Lives | None = None) -> np.ndarray:
    """Blocks alive at a moment, the largest first.  int64"""
    birth, death = found or lives(recording)
    alive = np.flatnonzero((birth <= moment) & (death > moment))
    return alive[np.argsort(-recording.size[alive], kind="stable")]


def phases(recording: Recording) -> list[tuple[int, int, str]]:
    """Runs of one phase: first event, the event after the last one, name."""
    at = np.flatnonzero(recording.action == PHASE)
    starts, numbers = [0, *at.tolist()], [0, *recording.value[at].tolist()]
    stops = [*starts[1:], len(recording.time)]
    return [(a, b, PHASES[n]) for a, b, n in zip(starts, stops, numbers, strict=True) if b > a and n]


def line_of(stack: tuple[Frame, ...]) -> str:
    """The innermost line of a stack, "" without one."""
    return f"{stack[0].filename}:{stack[0].line}" if stack else ""


def near(place: str) -> str:
    """A place as one says it in the folder where one is: without that folder."""
    return place.removeprefix(os.getcwd() + os.sep)


def name_of(recording: Recording, block: int) -> tuple[str, str, tuple[Frame, ...]]:
    """Operator, module ("" where not recorded) and stack of a block."""
    operator, module, stack = (int(x[block]) for x in (recording.operator, recording.module, recording.stack))
    return (
        recording.operators[operator] if operator >= 0 else "",
        recording.modules[module] if module >= 0 else "",
        recording.stacks[stack] if stack >= 0 else (),
    )


class Breakdown(NamedTuple):
    """Bytes alive at a moment, by what; the largest first."""

    moment: int
    total: int
    categories: dict[str, int]
    modules: dict[str, int]
    operators: dict[str, int]
    lines: dict[str, int]
    blocks: np.ndarray  # alive, the largest first


def breakdown(recording: Recording, moment: int | None = None) -> Breakdown:
    """What was alive at a moment, by default at the peak."""
    moment = recording.peak()[1] if moment is None else moment
    alive = alive_at(recording, moment)
    sizes = recording.size[alive]
    lines = [line_of(stack) for stack in recording.stacks]
    return Breakdown(
        moment,
        int(sizes.sum()),
        _summed(categories_at(recording, moment)[alive], sizes, list(CATEGORIES)),
        _summed(recording.module[alive], sizes, recording.modules),
        _summed(recording.operator[alive], sizes, recording.operators),
        _summed(recording.stack[alive], sizes, lines),
        alive,
    )


def _summed(places: Array, sizes: Array, names: list[str]) -> dict[str, int]:
    """Bytes by name, the largest first; "" is what is at place -1."""
    found: dict[str, int] = {}
    sums = np.bincount(places.astype(np.int64) + 1, sizes, len(names) + 1).astype(np.int64)
    for name, total in zip(["", *names], sums.tolist()):
        if total:
            found[name] = found.get(name, 0) + total
    return dict(sorted(found.items(), key=lambda item: -item[1]))
