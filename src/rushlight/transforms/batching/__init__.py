"""Batching rules: what each operator does when samples lie in a dimension more.

Most follow from the declaration: elementwise operators need ranks to be aligned, others the names of their static
arguments (`dim`, `dims`, `shape`, `size`, `index`, ...) to be counted one further; the families here name the operators
for which each way is right. An operator without a rule runs sample after sample, and warns once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], Any]
RULES: dict[str, Rule] = {}
FAMILIES = ("attention", "convolution", "gathering", "indexing", "linear", "losses", "moves", "norms", "pointwise",
            "random", "strided", "windows")  # fmt: skip


def rule(names: str) -> Callable[[Rule], Rule]:
    """Declare the batching rule of the operators named."""

    def declare(fn: Rule) -> Rule:
        for name in names.split():
            RULES[name] = fn
        return fn

    return declare


def rule_of(op: Any) -> Rule:
    """The batching rule of an operator: the loop over samples where there is none."""
    if not RULES:
        for family in FAMILIES:
            importlib.import_module(f"rushlight.transforms.batching.{family}")
    found = RULES.get(op.name)
    if found is None:
        from rushlight.transforms.batching import loop, pointwise

        return pointwise.pointwise if op.elementwise else loop.loop
    return found


def fallbacks() -> list[str]:
    """The names of the operators that run sample after sample."""
    from rushlight.dispatch.declare import OPS
    from rushlight.transforms.batching.loop import loop

    return sorted(name for name, op in OPS.items() if rule_of(op) is loop)
