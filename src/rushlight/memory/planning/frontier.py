"""The curve of peak bytes against seconds a step: what each way to train costs, and which to choose."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight.memory.counting.account import human
from rushlight.memory.counting.units import clock
from rushlight.memory.estimates.rehearsals import Setup
from rushlight.memory.planning import paging, trials, ways
from rushlight.memory.planning.costs import Costs
from rushlight.memory.planning.machine import Machine, machine
from rushlight.memory.planning.trials import TrialFailed
from rushlight.memory.planning.ways import PLAIN, Way
from rushlight.stores.errors import bytes_of

if TYPE_CHECKING:
    import os

    from rushlight.nn.modules.module import Module

__all__ = ["Frontier", "Point", "frontier", "max_batch"]

QUICK = 1.0  # seconds of a plain step up to which every point is measured, unless it is said otherwise
NEAR = 1.5  # times its limit: what a budget that was too small may ask for to be tried with that
SHARES = (0.75, 0.5, 0.35, 0.25, 0.15)  # of the plain peak: budgets that are looked at


@dataclass(frozen=True)
class Point:
    """One way to take a step.

    name, code: what it is, and what to write; "" for a plain step. peak: the most bytes alive at once. seconds: a step takes.
    measured: whether both were, in steps really taken; predicted: peak and seconds as they were predicted. exact: whether
    gradients are those of a plain step to the bit.
    """

    name: str
    code: str
    peak: int
    seconds: float
    measured: bool = False
    predicted: tuple[int, float] = (0, 0.0)
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {human(self.peak)}, {clock(self.seconds)} a step"


class Frontier(Sequence[Point]):
    """Points from the plain step down to the least that is possible: each needs fewer bytes than those before it, and no
    point that was found is both smaller and quicker.

    points: all that were looked at. machine: the figures that seconds were computed from. failed: what could not be done, and
    why.
    """

    def __init__(self, points: Sequence[Point], machine: Machine, failed: dict[str, str] | None = None):
        self.points, self.machine, self.failed = list(points), machine, failed or {}
        self.curve = best(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.curve[index]

    def __len__(self) -> int:
        return len(self.curve)

    @property
    def plain(self) -> Point:
        """The step as it is."""
        return self.points[0]

    @property
    def least(self) -> Point:
        """The point with the fewest bytes."""
        return self.curve[-1]

    def within(self, limit: int | str) -> Point:
        """The quickest point whose peak is at most `limit`.  Raises ValueError where there is none."""
        count = bytes_of(limit, "within")
        found = [point for point in self.curve if point.peak <= count]
        if not found:
            raise ValueError(f"within: no way was found to take a step in {human(count)}; the least is {self.least}")
        return min(found, key=lambda point: point.seconds)

    def slowdown(self, times: float) -> Point:
        """The point with the fewest bytes whose step takes at most `times` as long as the plain one."""
        found = [point for point in self.curve if point.seconds <= times * self.plain.seconds]
        return found[-1] if found else self.plain

    def save(self, path: str | os.PathLike[str], title: str = "") -> str:
        """Write the picture and the table: an SVG where `path` ends so, else a page.  The path as text."""
        from rushlight.memory.planning import pictures

        drawn = pictures.svg(self, title) if str(path).lower().endswith(".svg") else pictures.page(self, title)
        Path(path).write_text(drawn, encoding="utf-8")
        return str(path)

    def text(self, width: int | None = None) -> str:
        """The table and the picture for a terminal of so many columns."""
        from rushlight.memory.planning import pictures

        return pictures.text(self, width)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from rushlight.memory.planning import pictures

        return pictures.svg(self) + pictures.html_table(self)


def best(points: Sequence[Point]) -> list[Point]:
    """The points that no other is better than in both, the plain one first: fewer and fewer bytes."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p.seconds, p.peak)):
        if not found or point.peak < found[-1].peak:
            found.append(point)
    plain = points[0]
    return found if plain in found else [plain, *(p for p in found if p.peak < plain.peak)]


def frontier(model: Module, sample: Any, optimizer: object = None, *, loss: Any = None, measure: bool | None = None,
             exact: bool = True, spill: object = None) -> Frontier:  # fmt: skip
    """The curve of peak bytes against seconds per training step, with the code for each point.

    Args:
        model, sample, optimizer, loss: as for `estimate`.
        measure: True: take steps of every point, in a forked process, so that nothing here changes. False: take none; seconds
            are computed from the operators' costs and the machine's speed, which is measured once and kept in a file. None:
            take plain steps, from which seconds of the other points are computed, and steps of every point where a plain one
            takes less than a second.
        exact: leave out what gives other gradients than a plain step.
        spill: a directory for what does not fit, whose speed is measured.

    Raises TypeError and whatever the model raises as `estimate` does.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh()) for _ in range(4)])
    >>> found = memory.frontier(model, (512, 256), torch.optim.Adam(model.parameters()), measure=False)
    >>> found.least.peak < found.plain.peak
    True
    """
    setup = Setup(model, sample, optimizer, loss, True)
    return Search(setup, machine(spill), spill).run(measure, exact)


def max_batch(
    model: Module, sample: Any, optimizer: object = None, budget: Any = None, *, loss: Any = None, way: str = ""
) -> int:
    """The largest batch whose training step stays within `budget` bytes, or text like "8 GiB": found from shapes.

    model, sample, optimizer, loss: as for `estimate`; the first dimension of the sample's tensors is the batch. way: the name
    of a point of the frontier, such as "checkpoint each block"; "" for a plain step.
    Raises ValueError where one sample is too much, or there is no such way.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> model = torch.nn.Sequential(torch.nn.Linear(1000, 1000), torch.nn.ReLU(), torch.nn.Linear(1000, 10))
    >>> n = memory.max_batch(model, (64, 1000), torch.optim.Adam, "64 MB")
    >>> memory.estimate(model, (n, 1000), torch.optim.Adam).peak <= 64_000_000
    True
    """
    if budget is None:
        raise TypeError('max_batch: expected a budget, bytes or text like "8 GiB", got None')
    setup = Setup(model, sample, optimizer, loss, True)
    known = {found.name: found for found in ways.ways_of(setup, False)}
    if way and way not in known:
        raise ValueError(f"max_batch: expected way= to be one of {sorted(known)}, got {way!r}")
    setup.change = known[way].rehearse if way else None
    return setup.largest_batch(bytes_of(budget, "max_batch"), setup.peak_with(setup.batch))


class Search:
    """Looks at ways to take the step of a setup."""

    def __init__(self, setup: Setup, here: Machine, spill: Any = None):
        self.setup, self.costs, self.failed, self.spill = setup, Costs(here), dict[str, str](), spill

    def run(self, measure: bool | None, exact: bool) -> Frontier:
        """The points."""
        gc.collect()  # what is garbage now would die in the middle of a step
        plain = self.setup.rehearse()
        if measure is not False and trials.possible():
            measure = self.learn(plain.tally, measure)
        tallies = {PLAIN.name: plain.tally}
        found = [(PLAIN, Point(PLAIN.name, "", plain.tally.peak, self.costs.step(plain.tally)))]
        for way in ways.ways_of(self.setup, exact)[1:]:
            tally = tallies[way.name] = self.setup.rehearse(way.rehearse).tally
            found.append((way, Point(way.name, way.code, tally.peak, self.costs.step(tally), exact=way.exact)))
        points = self.judged(found, bool(measure))
        fused = ways.FUSED.name in tallies and ways.FUSED.name not in self.failed
        bounded = self.budgets(self.setup.rehearse(ways.paged(fused)).tally, plain.tally.peak, fused)
        points += self.judged(bounded, bool(measure))
        return Frontier([*{point.name: point for point in points}.values()], self.costs.machine, self.failed)

    def judged(self, found: list[tuple[Way, Point]], measure: bool) -> list[Point]:
        """Points with what was predicted of them, as they are really if they are to be measured; without what cannot be done."""
        predicted = [(replace(p, predicted=(p.peak, p.seconds)), way) for way, p in found]
        judged = (self.measured(p, way) if measure else p for p, way in predicted)
        return [p for p in judged if p is not None]

    def learn(self, tally: Any, measure: bool | None) -> bool:
        """Take plain steps and learn from them; whether all points are to be measured."""
        try:
            trial = trials.tried(self.setup, PLAIN)
        except TrialFailed as error:  # too large for this machine: what is smaller may not be
            self.failed[PLAIN.name] = str(error)
            return bool(measure)
        self.costs = self.costs.learned(tally, trial.seconds)
        return sum(trial.seconds) < QUICK if measure is None else measure

    def budgets(self, tally: Any, plain: int, fused: bool) -> list[tuple[Way, Point]]:
        """Budgets, down to the least that can be kept."""
        least = paging.floor(tally, self.costs)
        found = []
        for limit in [int(plain * share) for share in SHARES if plain * share > least] + [least]:
            moved = paging.play(tally, limit, self.costs)
            if moved is not None:
                way = ways.within(limit, fused, self.spill)
                found.append((way, Point(way.name, way.code, limit, moved.total(self.costs))))
        return found

    def measured(self, point: Point, way: Way) -> Point | None:
        """A point as it is really; None where it cannot be done."""
        try:
            trial = trials.tried(self.setup, way)
        except TrialFailed as error:
            if way.limit < error.least <= point.peak * NEAR:  # the budget said what would do
                larger = ways.within(error.least, way.rehearse is not None, self.spill)
                return self.measured(replace(point, name=larger.name, code=larger.code), larger)
            self.failed[point.name] = str(error)
            return point if way is PLAIN else None
        return replace(point, peak=trial.peak or point.peak, seconds=sum(trial.seconds), measured=True)
