"""Seconds that a rehearsed step would take: one model of the cost of a call, for all that asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.dispatch.declare import OPS
from rushlight.memory.estimates.rehearsals import READ, WRITTEN
from rushlight.memory.estimates.standins import BACKWARD_WORK, FORWARD_WORK, STEP_WORK, Tally, Work
from rushlight.memory.planning.machine import Machine

KINDS = (FORWARD_WORK, BACKWARD_WORK, STEP_WORK)
SHARED = 0.5  # of the time that threads move data, what is missing to those that compute: bandwidth, locks, cores


@dataclass(frozen=True)
class Costs:
    """Seconds of calls on a machine.

    factors: by which calls of forward, backward and the optimizer take longer than the machine's figures say, known from one
    step that was measured.
    """

    machine: Machine
    factors: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def of(self, work: Work) -> float:
        """Seconds of one call; of what goes to disk, those that other threads take."""
        here = self.machine
        if work.operator in (WRITTEN, READ):
            return work.bytes * (here.write if work.operator == WRITTEN else here.read)
        passes = OPS[work.operator].passes if work.operator in OPS else 1.0
        seconds = here.call + work.flops * here.flop + work.bytes * here.byte * passes
        return seconds * self.factors[work.kind]

    def by_kind(self, works: Sequence[Work]) -> list[float]:
        """Seconds of forward, backward and the optimizer's step."""
        found = [0.0] * len(KINDS)
        for work in works:
            if work.operator not in (WRITTEN, READ):
                found[work.kind] += self.of(work)
        return found

    def step(self, tally: Tally) -> float:
        """Seconds of the last step that was rehearsed."""
        works = last_step(tally)
        forward, *rest = self.by_kind(works)
        out, back = (sum(self.of(work) for work in works if work.operator == name) for name in (WRITTEN, READ))
        return beside(forward, out) + beside(sum(rest), back)

    def learned(self, tally: Tally, measured: Sequence[float]) -> Costs:
        """The same machine, knowing what forward, backward and the step of what was rehearsed took."""
        plain = Costs(self.machine).by_kind(last_step(tally))
        pairs = zip(measured, plain, strict=True)
        overall = sum(measured) / max(sum(plain), 1e-9)
        factors: Any = tuple(seconds / guess if guess > 1e-9 else overall for seconds, guess in pairs)
        return Costs(self.machine, factors)


def beside(computing: float, moving: float) -> float:
    """Seconds of computing while threads move data: they take a part of the time that they run from it."""
    return max(computing + moving * SHARED, moving)


def last_step(tally: Tally) -> list[Work]:
    """The calls of the last step that was rehearsed."""
    return tally.works[tally.steps[-1][1] :] if tally.steps else tally.works
