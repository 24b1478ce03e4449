"""Batching rules: what each operator does when samples lie in a dimension more.

Most follow from the declaration: elementwise operators need ranks to be aligned, others the names of their static
arguments (`dim`, `dims`, `shape`, `size`, `index`, ...) to be counted one further; the families
of `dispatch.families`, one of which stands in a declaration, say which way is right. An operator without one runs sample
after sample, and warns once.
"""

from __future__ import annotations

import importlib

from rushlight.dispatch.declare import OPS, Op
from rushlight.dispatch.families import Rule

MODULES = ("attention", "channels", "gathering", "indexing", "linear", "losses", "moves", "norms", "pointwise", "random",
           "strided", "windows")  # fmt: skip
_loaded = False


def rule_of(op: Op) -> Rule:
    """The batching rule of an operator: that of its family, and the loop over samples where it has none."""
    global _loaded
    if not _loaded:
        for module in MODULES:
            importlib.import_module(f"rushlight.transforms.batching.{module}")
        _loaded = True
    if op.batch is not None and op.batch.rule is not None:
        return op.batch.rule
    from rushlight.transforms.batching import loop, pointwise

    return pointwise.pointwise if op.elementwise else loop.loop


def fallbacks() -> list[str]:
    """The names of the operators that run sample after sample."""
    from rushlight.transforms.batching.loop import loop

    return sorted(name for name, op in OPS.items() if rule_of(op) is loop)
