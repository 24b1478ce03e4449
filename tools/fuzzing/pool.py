"""Worker processes that run programs, and are started again when one dies or hangs."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from .report import Finding
from .worker import work

SILENCE = 300.0  # seconds without a new program after which a worker is taken to hang


@dataclass
class Hand:
    """A worker process, and what is known of it."""

    process: Any
    pipe: Any
    current: Any  # number of the program that it runs, and whether the subject's side does
    seen: int = -2
    since: float = field(default_factory=time.monotonic)


@dataclass
class Pool:
    """Runs programs ``first``, ``first + 1``, ... of a seed up to ``programs``, taking the kinds in turn."""

    kinds: list[str]
    seed: str
    jobs: int
    deadline: float
    programs: int | None = None
    first: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def start(self, lane: int, after: int = -1) -> Hand:
        """A worker for every ``jobs``-th program, beginning behind the one that it stopped at."""
        context = mp.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        current = context.Array("q", [-1, 0])
        first = self.first + lane if after < 0 else after + self.jobs
        numbers = range(first, self.programs if self.programs is not None else 2**62, self.jobs)
        seconds = self.deadline - time.monotonic()
        process = context.Process(
            target=work, args=(theirs, current, self.kinds, self.seed, numbers, seconds), daemon=True
        )
        process.start()
        theirs.close()
        return Hand(process, ours, current)

    def run(self) -> Iterator[Finding]:
        """Findings as they are made, until all workers are done."""
        hands = {lane: self.start(lane) for lane in range(self.jobs)}
        while hands:
            for lane, hand in list(hands.items()):
                ended = not hand.process.is_alive()  # asked first: what it said last is then in the pipe
                done = yield from self.listen(hand)
                if done:
                    hand.process.join()
                    del hands[lane]
                elif ended or self.hangs(hand):
                    yield from self.lost(hand)
                    hands[lane] = self.start(lane, hand.current[0])
            time.sleep(0.1)

    def listen(self, hand: Hand) -> Generator[Finding, None, bool]:
        """Findings that a worker has sent; returns whether it is done."""
        try:
            while hand.pipe.poll():
                message = hand.pipe.recv()
                if isinstance(message, Finding):
                    yield message
                    continue
                for total, part in zip((self.counts, self.reasons), message[1:]):
                    total.update(part)
                if message[0]:
                    return True
        except EOFError:
            pass
        return False

    def hangs(self, hand: Hand) -> bool:
        """Whether a worker has been at one program for too long; it is killed then."""
        if hand.current[0] != hand.seen:
            hand.seen, hand.since = hand.current[0], time.monotonic()
        if time.monotonic() - hand.since < SILENCE:
            return False
        hand.process.kill()
        hand.process.join()
        return True

    def lost(self, hand: Hand) -> Iterator[Finding]:
        """The finding that a dead process makes, unless it died of the reference."""
        number, subject = hand.current[:]
        if not subject and hand.process.exitcode != -signal.SIGKILL:
            self.reasons["the reference ends the process"] += 1
            return
        name = self.kinds[number % len(self.kinds)]
        how = f"the process ended with code {hand.process.exitcode} while it ran this program"
        yield Finding(name, f"{name}:{self.seed}:{number}", [], [how], "crash or hang", f"crash {number}")


def jobs() -> int:
    """As many workers as there are processors, at most two."""
    return min(2, os.cpu_count() or 1)
