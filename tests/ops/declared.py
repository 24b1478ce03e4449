"""Operators by what their declarations say of them, for tests of all that are alike."""

from __future__ import annotations

import rushlight as torch
from rushlight.dispatch.declare import OPS, Op


def unary() -> list[Op]:
    """The operators of each element of one tensor alone, without other arguments, that torch has under their own names."""
    return [
        op
        for op in OPS.values()
        if op.elementwise
        and op.tensors == ("input",)
        and not op.static_names
        and not op.aux
        and hasattr(torch, op.name)
    ]


def by_results() -> list[str]:
    """The names of those of them whose gradient asks for the result, and not for the input."""
    return [
        op.name
        for op in unary()
        if op.formulas and all({"out"} <= set(f.requests) <= {"g", "out"} for f in op.formulas)
    ]
