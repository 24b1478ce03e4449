"""rushlight against itself: while it records, under anomaly mode, by the general path of every operator, and without
native kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import rushlight
from rushlight import memory
from rushlight.kernels.native import loader
from rushlight.memory.counting import holders

from ..program import Side, Writer
from . import functions, grads, hooks, layers, modes, operators, saved, transforms, views
from .base import Kind

DRAWS = (views.draw, views.draw, modes.draw, grads.draw, hooks.draw, functions.draw, saved.draw, transforms.draw)
DIRECT = (views.draw, grads.draw, hooks.draw, transforms.draw)  # those without saved-tensor hooks of their own
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


def sides(name: str, around: Callable[[], AbstractContextManager[Any]], prelude: str = "") -> tuple[Side, Side]:
    """rushlight as it is, and inside of something that must not change results."""
    return Side("plain", rushlight, prelude), Side(name, rushlight, prelude, exact=not prelude, around=around)


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
    "native": Kind("native", numeric, partial(sides, "without native kernels", plain_python, layers.PRELUDE), NUMERIC),
}
