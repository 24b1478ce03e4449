"""What a budget would move in a rehearsed step: the pager's rules, played on the events of the rehearsal.

The pager sends away, when an allocation would pass the limit, state of the optimizer that was used last, then saved tensors,
the oldest first, then gradients, then parameters; what an operator works on stays, and so does what the program holds (see
`holding`).  Played here are the same allocations, uses and frees.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rushlight.memory.budgets.pages import SMALL
from rushlight.memory.counting.holders import ACTIVATION, GRADIENT, OPTIMIZER_STATE, PARAMETER
from rushlight.memory.estimates.standins import FORWARD_WORK, Tally, Work
from rushlight.memory.planning.costs import Costs, beside
from rushlight.memory.recordings.recording import ALLOC, CATEGORY, FREE

ORDER = (OPTIMIZER_STATE, ACTIVATION, GRADIENT, PARAMETER)


class TooLittle(Exception):
    """A limit is below what has to be there at once."""


@dataclass
class Moved:
    """Bytes written and read in a step: of saved tensors, which threads move meanwhile, and of the rest, waited for."""

    saved_out: int = 0
    saved_in: int = 0
    rest_out: int = 0
    rest_in: int = 0
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])  # of computing: forward, the rest

    def total(self, costs: Costs) -> float:
        """Seconds of the step: what is moved behind the computing costs what of it does not fit behind."""
        here, (forward, rest) = costs.machine, self.seconds
        behind = beside(forward, self.saved_out * here.write) + beside(rest, self.saved_in * here.read)
        return behind + self.rest_out * here.write + self.rest_in * here.read


class Play:
    """One rehearsal under a limit."""

    def __init__(self, tally: Tally, limit: int, costs: Costs):
        self.tally, self.limit, self.costs = tally, limit, costs
        self.used, self.backward = 0, False
        self.category: dict[int, int] = {}  # of blocks that live
        self.present: dict[int, dict[int, None]] = {kind: {} for kind in ORDER}  # that may go, the latest used last
        self.away: set[int] = set()
        self.clean: set[int] = set()  # saved ones that are written
        self.pinned: tuple[int, ...] = ()
        self.moment = 0
        self.moved = Moved()

    def run(self) -> Moved:
        """What the last step moves.  Raises TooLittle where the limit cannot be kept."""
        works, events = self.tally.works, self.tally.events
        start, first = self.tally.steps[-1]
        at = 0
        for moment, (action, block, value) in enumerate([*events, (-1, -1, 0)]):
            self.moment = moment
            if moment == start:
                self.moved = Moved()
            while at < len(works) and works[at].moment <= moment:
                self.work(works[at])
                at += 1
                if at == first:
                    self.moved = Moved()
            if block >= 0:
                self.event(action, block, value)
        return self.moved

    def event(self, action: int, block: int, value: int) -> None:
        """A block is born, becomes something else, or dies."""
        size = self.tally.sizes[block]
        if action == ALLOC:
            self.room(size)
            self.used += size
        elif action == FREE:
            self.forget(block)
            self.used -= 0 if block in self.away else size
            self.away.discard(block)
            self.clean.discard(block)
            self.category.pop(block, None)
            return
        if action in (ALLOC, CATEGORY):
            self.forget(block)
            self.category[block] = value
            self.enter(block)

    def forget(self, block: int) -> None:
        kind = self.category.get(block)
        if kind in self.present:
            self.present[kind].pop(block, None)

    def enter(self, block: int) -> None:
        """A block is the latest used of its kind."""
        kind = self.category[block]
        if kind in self.present and self.tally.sizes[block] >= SMALL and block not in self.away:
            self.present[kind].pop(block, None)
            self.present[kind][block] = None

    def work(self, work: Work) -> None:
        """A call: its operands come back."""
        self.backward = work.kind != FORWARD_WORK
        self.moved.seconds[int(self.backward)] += self.costs.of(work)
        self.pinned = work.operands
        for block in work.operands:
            if block not in self.category:
                continue
            if block in self.away:
                size = self.tally.sizes[block]
                self.room(size)
                self.away.discard(block)
                self.used += size
                if self.category[block] == ACTIVATION:
                    self.moved.saved_in += size
                else:
                    self.moved.rest_in += size
            self.enter(block)

    def room(self, size: int) -> None:
        """Send blocks away until so many bytes fit."""
        for kind in ORDER:
            if self.used + size <= self.limit:
                return
            blocks = list(self.present[kind])
            if kind == OPTIMIZER_STATE or (kind == PARAMETER and self.backward):
                blocks.reverse()
            for block in blocks:
                if self.used + size <= self.limit:
                    return
                if block not in self.pinned and self.tally.held.get(block, 0) <= self.moment:
                    self.send(block, kind)
        if self.used + size > self.limit:
            raise TooLittle

    def send(self, block: int, kind: int) -> None:
        """A block goes."""
        size = self.tally.sizes[block]
        del self.present[kind][block]
        self.away.add(block)
        self.used -= size
        if kind != ACTIVATION:
            self.moved.rest_out += size
        elif block not in self.clean:
            self.moved.saved_out += size
            self.clean.add(block)


def play(tally: Tally, limit: int, costs: Costs) -> Moved | None:
    """What a budget of so many bytes would move in a step, None where it is too small."""
    try:
        return Play(tally, limit, costs).run()
    except TooLittle:
        return None


def floor(tally: Tally, costs: Costs) -> int:
    """The least limit that can be kept, to a hundredth."""
    low, high = 0, tally.peak
    while high - low > max(high // 100, 1 << 16):
        middle = (low + high) // 2
        if play(tally, middle, costs) is None:
            low = middle
        else:
            high = middle
    return high + high // 64  # as much more as the pager sends away, where it can
