"""Runs programs one after another in one process, and reports what differs."""

from __future__ import annotations

import gc
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .comparing import Difference, against, hold
from .judging import judge
from .kinds import kind as kind_named
from .kinds.base import Kind, writer
from .program import Overtime, entering
from .report import Finding, finding, signature

LIMIT = 10.0  # seconds of processor time for one program, shrinking apart
SHRINKS = 2  # programs that are shrunk for one kind of difference; more are only counted
TIDY = 25  # programs between collections of garbage
REPORT = 100  # programs between counts that are sent: one that ends the process takes the rest with it


@dataclass
class Worker:
    """The state of one process of the fuzzer."""

    counts: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    untidy: int = 0
    shrink_seconds: float = 3.0

    def __post_init__(self) -> None:
        warnings.simplefilter("ignore")
        gc.disable()

    def told(self) -> tuple[Counter[str], Counter[str]]:
        """The counts of programs and of reasons, which begin anew."""
        told = self.counts, self.reasons
        self.counts, self.reasons = Counter(), Counter()
        return told

    def program(self, name: str, seed: str) -> Finding | None:
        """Draw and run one program; the finding that it makes, if it is a new one."""
        kind = kind_named(name)
        self.counts[name] += 1
        self.untidy += 1
        if self.untidy % TIDY == 0:
            tidy()
        try:
            with limited(LIMIT):
                statements, found = self.differences(kind, seed)
        except Overtime:
            return Finding(name, f"{name}:{seed}", [], [f"took longer than {LIMIT} seconds"], "hang", f"hang {seed}")
        findings, reasons = judge(found, kind.ignored)
        self.reasons.update(reasons)
        return self.new(kind, seed, statements, findings[0]) if findings else None

    def differences(self, kind: Kind, seed: str) -> tuple[list[str], list[Difference]]:
        """The statements of a program and all differences."""
        drawn = writer(kind, seed)
        return drawn.statements, against(drawn.statements, drawn.execution, kind.sides()[1])

    def new(self, kind: Kind, seed: str, statements: list[str], first: Difference) -> Finding | None:
        """The finding, shrunk; None where enough of its like were seen."""
        likeness = " ".join([kind.name, *first.key, blamed(first)])
        self.seen[likeness] += 1
        if self.seen[likeness] > SHRINKS:
            return None
        small = self.shrunk(kind, statements, first)
        return finding(kind.name, f"{kind.name}:{seed}", small, *kind.sides())

    def shrunk(self, kind: Kind, statements: list[str], first: Difference) -> Difference:
        """The same difference, shown by a program as small as can be found."""
        from .shrinking import shrink

        smallest = [first]

        def holds(candidate: list[str]) -> bool:
            try:
                with limited(LIMIT):
                    reference, subject = kind.sides()
                    found, _ = judge(hold(candidate, reference, subject), kind.ignored)
                    if found and hold(candidate, reference, reference):
                        return False  # the program has no one answer
            except Overtime:
                return False
            like = [difference for difference in found[:1] if difference.key == first.key]
            smallest[:] = like or smallest
            return bool(like)

        if not holds(statements):
            return first  # it needs what earlier programs left behind
        shrink(statements, holds, self.shrink_seconds)
        return smallest[0]


def blamed(difference: Difference) -> str:
    """The operator that the difference seems to come from: of the statement that differs, or that named the variable."""
    if difference.step is not None:
        return signature(Difference("", "", None, None, [difference.statements[difference.step]]))
    name = difference.where.split(".")[0].split("[")[0]
    lines = [text for text in difference.statements if text.startswith((f"{name} ", f"{name}.", f"{name}["))]
    return signature(Difference("", "", None, None, lines[-1:]))


class limited:
    """Raises Overtime in what is inside when it takes more than that many seconds of processor time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGPROF, self.ring)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    @staticmethod
    def ring(number: int, frame: FrameType | None) -> None:
        raise Overtime


def tidy() -> None:
    """Collect garbage; what is left is there for good, so that neither the next collection nor budgets look at it."""
    gc.collect()
    gc.freeze()


def work(pipe: Any, current: Any, kinds: list[str], seed: str, numbers: Iterator[int], seconds: float) -> None:
    """What a worker process does: programs of all kinds in turn until the time is over.

    It sends findings, and (whether this is all, counts of programs, counts of reasons) now and then.
    """
    worker = Worker()
    entering.set(lambda side: current.__setitem__(1, side.library.__name__ != "torch"))
    for name in kinds:
        kind_named(name).sides()  # what is imported is no part of the first program
    tidy()
    deadline = time.monotonic() + seconds
    for number in numbers:
        if time.monotonic() > deadline:
            break
        name = kinds[number % len(kinds)]
        current[0] = number
        found = worker.program(name, f"{seed}:{number}")
        if found is not None:
            pipe.send(found)
        if sum(worker.counts.values()) >= REPORT:
            pipe.send((False, *worker.told()))
    current[0] = -1
    pipe.send((True, *worker.told()))
