"""Operators made of others, for batching rules: with their auxiliary results among the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.basics.state import Setting
from rushlight.dispatch.call import apply

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op

_MADE: dict[str, Any] = {}


def with_auxiliaries(op: Op) -> Op:
    """The operator that gives the outputs and then the auxiliary results of `op`, and has no gradient."""
    made = _MADE.get(op.name)
    if made is None:
        names = (*op.out_names, *op.aux)
        made = op.variant(out_names=names, aux=(), out_count=len(names), formulas=[], targets=frozenset(), target_mask=0, covered=0,
                          differentiable=())  # fmt: skip
        made.call = lambda *args: asked(made, args)
        _MADE[op.name] = made
    return made


def asked(made: Op, args: tuple[Any, ...]) -> Any:
    """Such an operator of arguments: recording, or what a forward keeps for gradients alone would not be there."""
    with Setting("grad", True):
        return apply(made, *made.bind(args, {}))
