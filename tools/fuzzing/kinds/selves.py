"""rushlight against itself: while it records, under anomaly mode, by the general path of every operator, in budgets and stores,
and without native kernels."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import rushlight
from rushlight import memory, stores
from rushlight.dispatch.keeping import rebuilt
from rushlight.kernels.native import loader
from rushlight.memory.budgets import budget, pager, pages
from rushlight.memory.counting import holders

from ..program import Side, Writer
from . import functions, grads, hooks, layers, modes, operators, saved, transforms, views
from .base import Kind

DRAWS = (views.draw, views.draw, modes.draw, grads.draw, hooks.draw, functions.draw, saved.draw, transforms.draw)
WITHOUT_HOOKS = tuple(draw for draw in DRAWS if draw is not saved.draw)  # which may disable those of budgets
DIRECT = (views.draw, grads.draw, hooks.draw, transforms.draw)  # those without saved-tensor hooks of their own
OFTEN = 50  # operators after which a budget looks for what it moves each time, and from then on between two looks
CEASES = re.compile(r"\.requires_grad(_\(| = )False")
NUMERIC = ("grad_fn", "version", "storage", "offset", "output_nr")


def any_kind(w: Writer) -> None:
    """A program of another kind."""
    w.rng.choice(DRAWS)(w)


def direct(w: Writer) -> None:
    """A program of a kind that packs nothing itself, in which no leaf ceases to require grad.

    What hooks unpack goes on to require it, as in PyTorch; what was saved itself does not.
    """
    do = w.do
    w.do = lambda text: CEASES.search(text) is None and do(text)  # type: ignore[method-assign]
    w.rng.choice(DIRECT)(w)


def any_or_numeric(w: Writer) -> None:
    """A program of another kind, or one about numbers."""
    (w.rng.choice(WITHOUT_HOOKS) if w.maybe(0.5) else numeric)(w)


def direct_or_numeric(w: Writer) -> None:
    """The same, of kinds that pack nothing themselves."""
    (direct if w.maybe(0.5) else numeric)(w)


def numeric(w: Writer) -> None:
    """Layers, or operators of our own choice."""
    if w.maybe(0.6):
        layers.draw(w)
    else:
        operators.ask(w, operators.own(w))


@contextmanager
def recorded() -> Iterator[None]:
    """Memory is recorded: not of what lives already, which takes a hundred times as long to find as the program runs."""
    with mock.patch.object(holders, "distinct", dict):
        memory.record_history()
    try:
        yield
    finally:
        memory.record_history(None)


@contextmanager
def plain_python() -> Iterator[None]:
    """No native kernels."""
    tables = loader.tables()
    loader._tables = {}
    try:
        yield
    finally:
        loader._tables = tables


def with_version(tensor: Any) -> Any:
    """A saved tensor, and the version that it has."""
    return tensor, None if tensor.is_inference() else tensor._version


def as_it_was(packed: Any) -> Any:
    """The saved tensor.  Raises RuntimeError where it was changed since, which is refused only where nothing packs it."""
    tensor, version = packed
    if version is not None and tensor._version != version:
        raise RuntimeError("a saved tensor has been modified by an inplace operation")
    return tensor


def identity_hooks() -> AbstractContextManager[Any]:
    """Saved-tensor hooks that change nothing: every operator takes its general path."""
    return rushlight.autograd.graph.saved_tensors_hooks(with_version, as_it_was)


@contextmanager
def everything_counts() -> Iterator[None]:
    """Arrays of any size are worth moving, and computing again; what lived before the program is not looked at."""
    with (
        mock.patch.object(pages, "SMALL", 1),
        mock.patch.object(rebuilt, "LARGE", 1),
        mock.patch.object(rebuilt, "SHARE", 1000.0),
        mock.patch.object(holders, "collected", gc.get_objects),
    ):
        yield


class Squeezing(pager.Pager):
    """After each operator, all that can be sent away is: half of what can be computed again is not written."""

    operators = 0

    def free_to_drop(self, page: Any) -> bool:
        """Computed again whatever that takes: arrays here are so small that disks are quicker."""
        if page.piece is None and page.kind == pager.SAVED and page.again is not None and page.number % 2:
            return True
        return super().free_to_drop(page)

    def end(self, *call: Any) -> None:
        super().end(*call)
        self.operators += 1
        self.squeeze(self.operators < OFTEN or self.operators % OFTEN == 0)

    def squeeze(self, look: bool) -> None:
        """Send away what can be; look: also what came into being since that was last looked for, which takes long."""
        with self.lock:
            if look:
                self.scan()
            self.free(0, False)
            self.spill.flush()
            self.spill.forget_ahead()


@contextmanager
def squeezed() -> Iterator[None]:
    """A budget that keeps nothing in memory that it need not."""
    with (
        everything_counts(),
        mock.patch.object(budget, "Pager", Squeezing),
        memory.budget("1 TB") as inside,
    ):
        inside.pager.wake()
        yield


@contextmanager
def stored() -> Iterator[None]:
    """Stores that give back what they were given: on disk, or computed again."""
    with everything_counts(), stores.disk(min_bytes=0, memory=1 << 16), stores.recompute(min_bytes=0):
        yield


def sides(
    name: str, around: Callable[[], AbstractContextManager[Any]], prelude: str = "", exact: bool | None = None
) -> tuple[Side, Side]:
    """rushlight as it is, and inside of something that must not change results; exact: to the bit, as without a prelude."""
    exact = not prelude if exact is None else exact
    return Side("plain", rushlight, prelude), Side(name, rushlight, prelude, exact=exact, around=around)


KINDS = {
    "recorded": Kind("recorded", any_kind, partial(sides, "recorded", recorded)),
    "anomaly": Kind(
        "anomaly",
        any_kind,
        partial(sides, "anomaly mode", partial(rushlight.autograd.detect_anomaly, check_nan=False)),
        ("alive",),
    ),
    # What these hooks return holds the tensor itself, which lives on where it is changed by what was computed from it.
    "general": Kind("general", direct, partial(sides, "general path", identity_hooks), ("alive",)),
    "squeezed": Kind(
        "squeezed",
        any_or_numeric,
        partial(sides, "in a budget that keeps nothing", squeezed, layers.PRELUDE, True),
        ("alive", *NUMERIC),
    ),
    "stored": Kind(
        "stored",
        direct_or_numeric,
        partial(sides, "in stores", stored, layers.PRELUDE, True),
        ("alive", *NUMERIC),
    ),
    "native": Kind("native", numeric, partial(sides, "without native kernels", plain_python, layers.PRELUDE), NUMERIC),
}
