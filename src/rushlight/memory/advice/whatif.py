"""What a recording would have been with blocks that live shorter, longer or not at all: replayed, not guessed.

A technique is a list of changes: bytes that are not there from one moment to another (or, negative, that are).  The replay
takes them off the recorded timeline and finds the new peak.  A moment is the number of an event, -1 the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, CATEGORY, Recording
from rushlight.memory.recordings.replay import Lives, lives, most_telling, phases

UNKNOWN, PARAMETER, GRADIENT, OPTIMIZER_STATE, ACTIVATION, INPUT, TEMPORARY, DETAIL = range(len(CATEGORIES))


class Changes(NamedTuple):
    """Bytes of `block` that are away from moment `start` until moment `stop`; negative ones are there in addition.

    (N) int64 each.
    """

    block: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    bytes: np.ndarray


class Outcome(NamedTuple):
    """The peak of a replay, and what makes it up."""

    peak: int
    moment: int
    categories: dict[str, int]


def changes(block: object, start: object, stop: object, sizes: object) -> Changes:
    """Changes of columns or numbers of any kind; those that last no moment are left out."""
    columns = np.broadcast_arrays(*(np.asarray(x, np.int64) for x in (block, start, stop, sizes)))
    right = (columns[1] < columns[2]) & (columns[3] != 0)
    return Changes(*(np.atleast_1d(c)[np.atleast_1d(right)] for c in columns))


def joined(*parts: Changes) -> Changes:
    """All of them."""
    return Changes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@dataclass
class Run:
    """A recording with what the techniques ask of it."""

    recording: Recording

    @cached_property
    def lives(self) -> Lives:
        """Births and deaths."""
        return lives(self.recording)

    @cached_property
    def telling(self) -> np.ndarray:
        """The most telling category of each block."""
        return most_telling(self.recording)

    @cached_property
    def live(self) -> np.ndarray:
        """Bytes at each moment, the beginning first.  (E + 1) int64"""
        return np.concatenate([[self.recording.initial_bytes()], self.recording.live()])

    @cached_property
    def phases(self) -> list[tuple[int, int, str]]:
        """Runs of one phase."""
        return phases(self.recording)

    @cached_property
    def steps(self) -> list[int]:
        """Where training steps begin: a forward after something else."""
        starts = [(start, name) for start, _, name in self.phases]
        return [
            s for i, (s, name) in enumerate(starts) if name == "forward" and (i == 0 or starts[i - 1][1] != "forward")
        ]

    @cached_property
    def actual(self) -> Outcome:
        """The recording's own peak."""
        return self.replay(changes(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)))

    @property
    def size(self) -> np.ndarray:
        """Bytes of each block."""
        return self.recording.size  # type: ignore[no-any-return]

    @property
    def end(self) -> int:
        """The moment after the last."""
        return len(self.recording.time)

    def of(self, *categories: int) -> np.ndarray:
        """Blocks that are remembered as one of these categories."""
        return np.flatnonzero(np.isin(self.telling, categories))

    def phase_of(self, moments: np.ndarray) -> np.ndarray:
        """The names of the phases at these moments."""
        starts = np.array([s for s, _, _ in self.phases] or [0])
        stops = np.array([s for _, s, _ in self.phases] or [0])
        names = np.array([name for _, _, name in self.phases] or [""], object)
        place = np.maximum(np.searchsorted(starts, moments, side="right") - 1, 0)
        inside = (moments >= starts[place]) & (moments < stops[place])
        return np.where(inside, names[place], "")

    def starts(self, phase: str) -> np.ndarray:
        """Where a phase begins, in order."""
        return np.array([start for start, _, name in self.phases if name == phase], np.int64)

    def became(self, category: int) -> np.ndarray:
        """The first moment at which each block was of a category; beyond the end if it never was.  (B)"""
        r = self.recording
        found = np.full(len(r.size), self.end + 1, np.int64)
        told = np.flatnonzero(((r.action == ALLOC) | (r.action == CATEGORY)) & (r.value == category))
        found[r.block[told][::-1]] = told[::-1]  # of several the first one stays
        if r.initial_category is not None:
            found[: r.initial][np.asarray(r.initial_category) == category] = -1
        return found

    def replay(self, what: Changes) -> Outcome:
        """The peak with changes made."""
        extra = np.zeros(self.end + 2, np.int64)
        np.subtract.at(extra, what.start + 1, what.bytes)
        np.add.at(extra, np.minimum(what.stop + 1, self.end + 1), what.bytes)
        live = self.live + np.cumsum(extra[:-1])
        moment = int(live.argmax()) - 1
        return Outcome(int(live[moment + 1]), moment, self.categories(what, moment))

    def categories(self, what: Changes, moment: int) -> dict[str, int]:
        """Bytes by what blocks are remembered as, at a moment with changes made, the largest first."""
        birth, death = self.lives
        there = (birth <= moment) & (death > moment)
        found = np.bincount(self.telling[there], self.size[there], len(CATEGORIES))
        at = (what.start <= moment) & (what.stop > moment)
        np.subtract.at(found, self.telling[what.block[at]], what.bytes[at])
        pairs = [(name, int(n)) for name, n in zip(CATEGORIES, found.tolist(), strict=True) if n > 0]
        return dict(sorted(pairs, key=lambda pair: -pair[1]))
