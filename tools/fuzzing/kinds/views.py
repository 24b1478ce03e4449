"""Views, views of views, changes in place of either, and the gradients afterwards."""

from __future__ import annotations

from ..program import Writer
from .base import Kind, with_torch
from .pieces import CHANGES, RARE_CHANGES, RESULTS, VIEWS, gradients, leaf, overlaps, pick, spoils, tensor


def draw(w: Writer) -> None:
    """One or two leaves, some results, then views and changes in any order."""
    for _ in range(w.rng.randint(1, 2)):
        leaf(w)
    if not w.tensors():
        return
    for _ in range(w.rng.randint(2, 10)):
        step(w)
    gradients(w)
    if w.rng.random() < 0.2:
        step(w)
        gradients(w)


def step(w: Writer) -> None:
    """One statement."""
    x, chance = tensor(w), w.rng.random()
    if 0.35 <= chance < 0.65 and overlaps(w.names[x]):
        return  # what is written twice has no one value
    if chance < 0.35:
        w.let(pick(w, VIEWS, x))
    elif chance < 0.65:
        in_place(w, x, pick(w, CHANGES, x))
    elif chance < 0.75:
        in_place(w, x, pick(w, RARE_CHANGES, x))
    elif chance < 0.78:
        w.do(f"del {x}") if len(w.tensors()) > 2 else None
    else:
        w.let(pick(w, RESULTS, x))


def in_place(w: Writer, x: str, text: str) -> None:
    """A change, sometimes under no_grad."""
    text = f"with torch.no_grad():\n    {text}" if w.rng.random() < 0.25 else text
    if not spoils(w, x, text):
        w.do(text)


KIND = Kind("views", draw, with_torch)
