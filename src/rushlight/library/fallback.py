"""What becomes of results of operators that have a kernel for the CPU alone, and no formula: whoever asks for their gradient is warned."""

from __future__ import annotations

from functools import partial
from typing import Any

from rushlight.autograd.function import Function
from rushlight.basics.caller import warn
from rushlight.basics.tree import tree_flatten, tree_unflatten
from rushlight.tensor import Tensor

MODES = ("warn", "nothing")
_setting = {"mode": "warn"}


def _get_autograd_fallback_mode() -> str:
    """What is done about such results: "warn", or "nothing"."""
    return _setting["mode"]


def _set_autograd_fallback_mode(mode: str) -> None:
    """Set what is done about such results.  Raises RuntimeError for another word than "warn" and "nothing"."""
    if mode not in MODES:
        raise RuntimeError(f"_set_autograd_fallback_mode: mode must be one of {MODES}, got {mode!r}")
    _setting["mode"] = mode


def told(name: str, *grads: object) -> None:
    """Warn of a gradient that comes to a result of an operator."""
    warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it: what comes from "
        "above goes on as its kernel recorded it, or nowhere. Register a formula with torch.library.register_autograd, or a function that "
        "computes it of operators for CompositeImplicitAutograd."
    )


class Untracked(Function):
    """The end of the way for gradients of results that their kernel has not recorded."""

    @staticmethod
    def forward(ctx: Any, name: str, results: list[Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.operator, ctx.count = name, len(inputs)
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[None, ...]:
        told(ctx.operator)
        return (None,) * int(ctx.count + 2)


def with_warnings(name: str, result: object, inputs: list[Tensor]) -> object:
    """The result of a call whose inputs require grad, in the graph: with a hook that warns, or a node that passes nothing on."""
    if _setting["mode"] == "nothing":
        return result
    values, spec = tree_flatten(result)
    for x in values:
        if isinstance(x, Tensor) and x.requires_grad:
            x.register_hook(partial(told, name))
    given = {id(x) for x in inputs}
    lost = [i for i, x in enumerate(values) if is_lost(x) and id(x) not in given]
    if lost:
        made = Untracked.apply(name, [values[i] for i in lost], *[x for x in inputs if x.requires_grad])
        for i, x in zip(lost, made, strict=True):
            values[i] = x
    return tree_unflatten(values, spec)


def is_lost(x: object) -> bool:
    """Whether a result could have a gradient and has no graph."""
    return isinstance(x, Tensor) and not x.requires_grad and (x.is_floating_point() or x.is_complex())
