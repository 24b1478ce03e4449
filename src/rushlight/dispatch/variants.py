"""Operators made of others, for batching rules: with their auxiliary results among the outputs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op

_MADE: dict[str, Any] = {}


def with_auxiliaries(op: Op) -> Op:
    """The operator that gives the outputs and then the auxiliary results of `op`, and has no gradient."""
    made = _MADE.get(op.name)
    if made is None:
        made = copy.copy(op)
        made.out_names, made.aux = (*op.out_names, *op.aux), ()
        made.out_count, made.formulas, made.targets, made.target_mask = len(made.out_names), [], frozenset(), 0
        made.differentiable, made.plans = (), {}
        _MADE[op.name] = made
    return made
