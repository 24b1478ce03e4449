"""Forward mode through custom functions: their `jvp`, called once for each level that an argument has a tangent of."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.state import modes, set_mode
from rushlight.storage import root_of
from rushlight.tensor import Tensor
from rushlight.transforms.dual import DualLevel, base_of


def pushes(args: tuple[Any, ...]) -> bool:
    """Whether an argument has a tangent of an active level."""
    return any(isinstance(level, DualLevel) and level.owns(args) for level in modes.levels)


def push(ctx: Any, args: tuple[Any, ...], results: Any, constant: tuple[int, ...]) -> None:
    """Give the outputs of a custom function the tangents that its jvp computes.

    constant: the numbers of the outputs that were marked as not differentiable. Levels go from the outermost to the
    innermost, and each jvp runs inside of the levels around its own: so tangents have tangents.
    """
    outputs = list(results) if isinstance(results, tuple) else [results]
    every = modes.levels
    for n, level in enumerate(every):
        if not isinstance(level, DualLevel) or not level.owns(args):
            continue
        given = [argument(ctx, level, x) for x in args]
        around = tuple(x for i, x in enumerate(every) if i < n or not isinstance(x, DualLevel))
        former, ctx._pushing = set_mode("levels", around), True
        try:
            found = ctx._function.jvp(ctx, *given)
        finally:
            set_mode("levels", former)
            ctx._pushing = False
        for k, (out, t) in enumerate(zip(outputs, checked(ctx, outputs, found), strict=True)):
            if t is None or out is None:
                continue
            if k in constant or not isinstance(out, Tensor) or out._array.dtype.kind in "biu":
                raise RuntimeError(f"Function's jvp returned a gradient at position {k}, but the corresponding forward output is "
                                   "not a differentiable Tensor. You should return None at that position instead.")  # fmt: skip
            if any(out is x for x in args):  # changed in place
                level.change(out, t)
            else:
                level.give(out, t)
                link(out, args, t, given, level, ctx)
    for kept, nr, _ in (entry for entry in ctx._saved or () if entry is not None):
        if nr is not None and hasattr(kept, "tangents") and nr.__class__ is int:  # an output that was saved
            kept.tangents = outputs[nr]._tangents


def link(out: Tensor, args: tuple[Any, ...], t: Tensor, given: list[Any], level: DualLevel, ctx: Any) -> None:
    """Have the tangent of an output that is a view of an argument follow changes in place of either.

    Raises RuntimeError if the tangent is not a view of the argument's; a level of `torch.func` takes it as it is.
    """
    of = next(
        (x for x in args if isinstance(x, Tensor) and x._storage is not None and x._storage is out._storage), None
    )
    if of is None or out._view is None:
        return
    if not any(isinstance(x, Tensor) and shares(t, x) for x in given):
        if level.of_function:
            return
        raise RuntimeError(f"A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
                           f"a view: {ctx._function.__name__}.jvp must return a view of the tangent of that input.")  # fmt: skip
    base = base_of(of)
    out._dual_base, out._stamp = base, base._stamp


def shares(t: Tensor, other: Tensor) -> bool:
    """Whether two tangents lie on one memory."""
    if isinstance(t._array, np.ndarray) and isinstance(other._array, np.ndarray):
        return root_of(t._array) is root_of(other._array)
    return t is other or t._storage is other._storage


def argument(ctx: Any, level: DualLevel, x: Any) -> Any:
    """What jvp gets for an argument of forward."""
    if not isinstance(x, Tensor):
        return None
    t = level.tangent_of(x)
    if t is None and ctx.materialize_grads and x._array.dtype.kind not in "biu":
        from rushlight.transforms.dual import zeros_like

        return zeros_like(x)
    return t


def checked(ctx: Any, outputs: list[Any], found: Any) -> list[Any]:
    """The tangents that a jvp returned, one or None for each output of forward."""
    tangents = list(found) if isinstance(found, (tuple, list)) else [found]
    name = ctx._function.__name__
    if len(tangents) != len(outputs):
        raise RuntimeError(f"{name}.jvp returned an incorrect number of tangents: forward has {len(outputs)} outputs, got "
                           f"{len(tangents)}")  # fmt: skip
    for k, (out, t) in enumerate(zip(outputs, tangents, strict=True)):
        if t is None:
            continue
        if not isinstance(t, Tensor):
            raise TypeError(
                f"{name}.jvp: expected a Tensor or None as the tangent of output {k}, got {type(t).__name__}"
            )
        if isinstance(out, Tensor) and t._array.shape != out._array.shape:
            raise RuntimeError(f"{name}.jvp: the tangent of output {k} has size {list(t.shape)}, expected that of the output, "
                               f"{list(out.shape)}")  # fmt: skip
        if isinstance(out, Tensor) and t._array.dtype != out._array.dtype:
            if t._array.dtype.kind == "c" and out._array.dtype.kind != "c":
                raise RuntimeError(f"{name}.jvp: the tangent of output {k} has dtype {t.dtype}, expected that of the output, "
                                   f"{out.dtype}: its imaginary part would be lost. Return its real part.")  # fmt: skip
            tangents[k] = t.to(out.dtype)
        elif any(t is x for x in ctx.saved_for_forward):  # a tangent of its own
            tangents[k] = t.view_as(t)
    return tangents
