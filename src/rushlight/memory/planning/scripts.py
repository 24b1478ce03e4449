"""Ways of training taken by a program as it is: applied when its model first trains, measured by its optimizer's steps."""

from __future__ import annotations

import itertools
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rushlight.basics import events
from rushlight.basics.state import modes
from rushlight.memory.counting import account
from rushlight.memory.counting.holders import collected_of
from rushlight.memory.planning import ways
from rushlight.memory.planning.frontier import SHARES, Frontier, Point
from rushlight.memory.planning.machine import machine
from rushlight.memory.planning.trials import LONGEST, TrialFailed, in_child
from rushlight.memory.planning.ways import PLAIN, Way
from rushlight.nn.modules import module as nn_module
from rushlight.optim.optimizer import Optimizer, register_optimizer_step_post_hook

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

STEPS = 4  # whose times are taken; the first begins them
OTHERWISE = {  # why steps may give something else, by whether the optimizer steps in backward
    True: "the program uses gradients, or changes them, between backward and step()",
    False: "running a part of the program again changes more than running it once",
}
CLIPS = "clipping the gradients of parameters that have been stepped"  # how `nn.utils.clip_grad_norm_` refuses
WORTH = 0.98  # a smaller budget is tried if it is smaller by this


class Trained(NamedTuple):
    """What first steps took, and gave.

    peak: bytes, at most. seconds: of a step. digest: of the parameters and buffers that the last step left; None
        where there were fewer steps.
    """

    peak: int
    seconds: float
    digest: int | None = None


class Enough(SystemExit):
    """As many steps were taken as were asked for."""

    def __init__(self, found: Trained):
        super().__init__()
        self.found = found


@contextmanager
def taken(way: Way) -> Iterator[list[Module]]:
    """Whatever is trained within is trained one way, from the first forward with gradients of an outermost module on that has
    an optimizer, which is put into the list."""
    models: list[Module] = []
    with ExitStack() as stack:
        untrained: list[Module] = []  # that runs: it has no optimizer yet, nor have those within
        lock = threading.Lock()

        def begins(module: Module, args: tuple[Any, ...]) -> None:
            if untrained or not modes.grad or not any(p.requires_grad for p in module.parameters()):
                return
            with lock:  # threads may train several models
                if not models:
                    begin(module, optimizers_of(module))

        def begin(module: Module, optimizers: list[Any]) -> None:
            if not optimizers:
                untrained.append(module)
                return
            for handle in handles:
                handle.remove()
            models.append(module)
            if account.is_counted():
                account.reset_peak()
            stack.enter_context(way.apply(module, optimizers))

        def ends(module: Module, *_: object) -> None:
            if untrained and untrained[0] is module:
                untrained.clear()

        handles = [
            nn_module.register_module_forward_pre_hook(begins),
            nn_module.register_module_forward_hook(ends, always_call=True),
        ]
        for handle in handles:
            stack.callback(handle.remove)
        yield models


def optimizers_of(module: Module) -> list[Any]:
    """The optimizers that there are of a module's parameters."""
    own = {id(p) for p in module.parameters()}
    found = []
    for x in collected_of(Optimizer):
        groups = x.__dict__.get("param_groups") or ()
        if any(id(p) in own for group in groups for p in group["params"]):
            found.append(x)
    return found


@contextmanager
def stopped_after(count: int, models: list[Module]) -> Iterator[list[float]]:
    """Raises Enough after so many steps of the optimizer that steps first; the moments of its steps."""
    moments: list[float] = []
    first: list[Any] = []
    process = os.getpid()

    def stepped(optimizer: object, args: Sequence[Any], kwargs: dict[str, Any] | None) -> None:
        if os.getpid() != process:  # one that the program forked
            return
        first.append(optimizer)
        if optimizer is first[0]:
            moments.append(perf_counter())
            if len(moments) >= count:
                raise Enough(measures(moments)._replace(digest=digest(optimizer, models)))

    handle = register_optimizer_step_post_hook(stepped)
    try:
        yield moments
    finally:
        handle.remove()


def digest(optimizer: Any, models: list[Module]) -> int:
    """A number that tells apart the parameters of an optimizer, and the buffers of models, from such as were trained otherwise."""
    found = 0
    parameters = (p for group in optimizer.param_groups for p in group["params"])
    for t in (*parameters, *(buffer for model in models for buffer in model.buffers())):
        if not isinstance(getattr(t, "_array", None), np.ndarray):
            continue
        found = zlib.crc32(np.ascontiguousarray(t._array).reshape(-1).view(np.uint8).data, found)
    return found


def measures(moments: list[float]) -> Trained:
    """The peak, and the seconds of the quickest step.  Raises TrialFailed where there were too few."""
    if len(moments) < 2:
        raise TrialFailed(f"the program took {len(moments)} steps of an optimizer, and two are needed to measure one")
    seconds = min(b - a for a, b in itertools.pairwise(moments))
    return Trained(account.peak() if account.is_counted() else 0, seconds)


def tried(start: Callable[[], object], way: Way, count: int = STEPS, longest: float = LONGEST) -> Trained:
    """What a program takes, and gives, that is trained one way: in a child process, for so many steps.

    start: runs the program, and raises what it raises.  Raises TrialFailed where that fails.
    """

    def run() -> Trained:
        moments: list[float] = []
        try:
            with taken(way) as models, stopped_after(count, models) as moments:
                start()
        except Enough as stop:
            return stop.found
        except SystemExit as stop:
            if stop.code:
                raise TrialFailed(f"the program ended with status {stop.code}") from None
        return measures(moments)

    return Trained(*in_child(run, longest))


class Treatments:
    """An observer that is told how gradients are treated between backward and step, and of nothing else."""

    passive, looks = True, False

    def __init__(self) -> None:
        self.treatments: dict[str, None] = {}

    def begin(self, *event: object) -> None:
        """Something begins."""

    def note(self, *event: object) -> None:
        """An operator or node has run."""

    end = note


class Plain:
    """A program as it is, to which those that are trained otherwise are compared: they have to leave the same parameters."""

    def __init__(self, start: Callable[[], object], count: int, told: Callable[[str], object]):
        self.start, self.count, self.told = start, count, told
        import random  # noqa: F401

        import numpy.random  # noqa: F401  a program that does not seed it draws the same in every child

        self.found = self.tried(PLAIN)
        self.repeats: bool | None = None  # whether it leaves the same when it runs again; None: not known yet

    def tried(self, way: Way) -> Trained:
        """What its first steps take one way."""
        self.told(f"trying: {way.name}")
        return tried(self.start, way, self.count)

    def measured(self, way: Way) -> Point:
        """The point of a way.  Raises TrialFailed where it cannot be done, and where it gives other parameters than it should."""
        found = self.found if way is PLAIN else self.tried(way)
        if way.exact and self.differs(found):
            raise TrialFailed(
                f"it leaves other parameters or buffers than the plain steps: {OTHERWISE['optimizer' in way.code]}"
            )
        return Point(way.name, way.code, found.peak, found.seconds, True, (found.peak, found.seconds), way.exact)

    def clipping(self) -> str:
        """How the program limits gradients before its steps, as arguments of `in_backward`; nothing where that cannot be said so."""
        seen = Treatments()

        def run() -> str:
            try:
                with events.Observation(seen, everywhere=True), taken(PLAIN) as models, stopped_after(2, models):
                    self.start()
            except SystemExit:
                pass  # as a rule `Enough`
            names = [how.partition("=")[0] for how in seen.treatments]
            said = len(set(names)) == len(names) and all(name.startswith("clip_grad") for name in names)
            return ", ".join(seen.treatments) if said else ""

        return str(in_child(run, LONGEST))

    def differs(self, found: Trained) -> bool:
        """Whether steps left other parameters than they would have, of a program that always leaves the same."""
        mine = self.found.digest
        if mine is None or found.digest is None or found.digest == mine or self.repeats is False:
            return False
        if self.repeats is None:
            self.repeats = self.tried(PLAIN).digest == mine
        return self.repeats


def frontier_of(
    start: Callable[[], object], exact: bool = True, count: int = STEPS, told: Callable[[str], object] = str
) -> Frontier:
    """The curve of a program: every point is a run of its first steps, in a process of its own, whose output is dropped.

    told: is given a line about each.  Raises TrialFailed where not even the program as it is can be run.
    """
    plain = Plain(start, count, told)
    points, failed, clip = [plain.measured(PLAIN)], dict[str, str](), ""

    def measure(*some: Way) -> None:
        for way in some:
            try:
                points.append(plain.measured(way))
                failed.pop(way.name, None)
            except TrialFailed as error:
                failed[way.name] = str(error)

    single = [ways.CHECKPOINT, *(way for way in ways.SAVING if way.exact or not exact)]
    fused = ways.FUSED
    measure(*single, fused)
    if CLIPS in failed.get(fused.name, ""):
        clip = plain.clipping()
        fused = ways.clipping(clip) if clip else fused
        measure(*([fused] if clip else ()))
    measure(*(ways.both(fused, way) for way in single))
    points += bounded(plain.measured, plain.found.peak, fused.name not in failed, failed, clip)
    return Frontier(points, machine(), failed)


def bounded(
    measured: Callable[[Way], Point], plain: int, fused: bool, failed: dict[str, str], clip: str = ""
) -> list[Point]:
    """Points of budgets, down to the least that can be kept; what is not possible goes into `failed`.

    A budget that is too small says what would have done until there, which is tried next, as often as that is less than
    the smallest that was kept.  Of those that are too small one after another only the last is told of.
    """
    found, kept, small = list[Point](), plain, ""
    limits = [int(plain * share) for share in SHARES]
    while limits:
        way = ways.within(limits.pop(0), fused, clip=clip)
        try:
            found.append(measured(way))
            kept = way.limit
        except TrialFailed as error:
            failed.pop(small, None)
            small, failed[way.name] = way.name, str(error)
            limits = [error.least] if way.limit < error.least < kept * WORTH else []
    return found


def way_of(point: Point, spill: object = None) -> Way:
    """The way that a point of a program's frontier is of."""
    clip = ways.clip_of(point.code)
    fused = ways.clipping(clip) if clip else ways.FUSED
    every = [PLAIN, ways.CHECKPOINT, *ways.SAVING, fused]
    every += [ways.both(fused, way) for way in every[1:-1]]
    for way in every:
        if way.name == point.name:
            return way
    limit = int(ways.limit_of(point.code))
    return replace(ways.within(limit, "optimizer" in point.code, spill, clip), name=point.name)
