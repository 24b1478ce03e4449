"""Views: how their place in the graph follows in-place changes of the memory they share."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex
from rushlight.basics.state import Setting
from rushlight.engine.conform import tensor_functions
from rushlight.engine.node import Lost, Severed, next_seq
from rushlight.storage import bytes_before, reshape, storage_of
from rushlight.tensor import LEAF, Tensor, ViewInfo

T = TypeVar("T")


class Step:
    """How a view was made from what it views: called with that, or an array like it, it makes the view again."""

    __slots__ = ("op", "position", "statics")

    def __init__(self, op: Any, statics: tuple[Any, ...], position: int | None):
        self.op, self.statics, self.position = op, statics, position

    def __call__(self, x: Any) -> Any:
        made = self.op.call(x, *self.statics)
        return made if self.position is None else made[self.position]


def make_view(view: Tensor, of: Tensor, op: Any, statics: tuple[Any, ...], position: int | None, kind: str) -> None:
    """Note that `view`, which shares the memory of `of`, is what `op` makes of it (its result at `position`)."""
    parent = of._view
    info = ViewInfo()
    info.op, info.statics, info.position, info.parent = op, statics, position, parent
    if parent is None:
        info.base, info.array, info.kind = of, of._held, kind
    else:
        info.base, info.array, info.kind = parent.base, parent.array, kind or parent.kind
    view._storage = storage = storage_of(of)
    info.version = storage.version
    view._view = info


def chain_of(view: Tensor) -> tuple[Any, ...]:
    """The operators that make a view from its base as the base is now.

    A view by strides reaches memory that the views before it do not have: it is made from the base directly, unless it
    is one of the parts of complex numbers or of numbers made of them, whose strides count other elements.
    """
    info = view._view
    array, base, steps = info.array, info.base, []
    while info is not None:
        if info.parent is not None and info.op.by_memory and view._held.dtype == base._held.dtype:
            return restrided(view, base)
        steps.append(Step(info.op, info.statics, info.position))
        info = info.parent
    if array is not base._held and not getattr(base._held, "interpreted", False):  # else a level has adopted the base
        if not spans(base._held, array):
            return restrided(view, base)
        steps.append(tensor_functions["restride"](array, base._held))
    steps.reverse()
    return tuple(steps)


def spans(now: Array, array: Array) -> bool:
    """Whether the memory between the first and the last element of `now` holds all of `array`.

    Not so where a base was made smaller by `as_strided_`: a gradient of it has room for what it still shows alone.
    """
    low, high = extent(now)
    first, last = extent(array)
    return array.size == 0 or (low <= first and last <= high)


def extent(array: Array) -> tuple[int, int]:
    """Where the elements of an array begin and end, in bytes from the start of the owning array."""
    start, steps = bytes_before(array), [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    return start + low, start + high + array.itemsize * (array.size > 0)


def repeats(array: Array) -> bool:
    """Whether several elements of an array are one place in memory."""
    if array.__class__ is not np.ndarray or array.flags.forc or array.size == 0:
        return False
    reach = 0
    for step, n in sorted((abs(s), n) for n, s in zip(array.shape, array.strides, strict=True) if n > 1):
        if step == 0:
            return True
        if step <= reach:  # they may be: count
            places = sum(np.ix_(*(np.arange(n) * s for n, s in zip(array.shape, array.strides, strict=True))))
            return bool(np.unique(places).size < array.size)
        reach += step * (n - 1)
    return False


def restrided(view: Tensor, base: Tensor) -> tuple[Any, ...]:
    """The steps to a view by strides straight from a base, whose bits and dtype it may not share."""
    turns, held, shown = view._bits ^ base._bits, base._held, view._held
    parts, before, after = tensor_functions["view_as_real"], [], []
    if is_complex(held.dtype) and shown.dtype.kind == "f":
        before, held = [Step(parts, (), None)], parts.forward(held)
    elif held.dtype.kind == "f" and is_complex(shown.dtype):  # the strides are those of the parts
        after, shown = [Step(tensor_functions["view_as_complex"], (), None)], parts.forward(shown)
    turned = (Step(op, (), None) for op in tensor_functions["turns"] if op.turns & turns)
    return (*before, tensor_functions["restride"](shown, held), *after, *turned)


def replay(chain: tuple[Any, ...], base: T) -> T:
    """Apply the operators of a view to a tensor or an array."""
    for step in chain:
        base = step(base)
    return base


def lags(tensor: Tensor) -> bool:
    """Whether it is a view whose base was changed in place since its edge was made."""
    info = tensor._view
    return info is not None and info.version != tensor._storage.version


def refresh(view: Tensor) -> None:
    """Bring the edge of a view up to date with its base, which was changed in place since.

    Raises RuntimeError for views whose history cannot be rewritten.
    """
    info = view._view
    base, own = info.base._edge, view._edge
    if base is None and (own is None or own is LEAF):
        return
    version = view._storage.version
    if info.version == version:
        return
    if info.kind:
        raise RuntimeError(refusal(view, "its base or another view of its base has been"))
    if base is None:
        view._edge = Lost(view._held)
    else:
        with Setting("grad", True), Setting("saved_hooks", ()):
            view._edge = replay(chain_of(view), info.base)._edge
    info.version = version  # only now: what is refused is refused again at the next use, and keeps no former history
    if view._retains:
        follow_retained(view, own)


def follow_retained(tensor: Tensor, former: Any) -> None:
    """Have a tensor that retains its gradient get that of its new history, not of what it was before a change in place."""
    node, edge = getattr(former, "node", None), tensor._edge
    if node is not None and node.extra is not None:
        node.extra.retained.pop(former.nr, None)
    if getattr(edge, "node", None) is not None:
        edge.node.extras().retained[edge.nr] = tensor._weak()


FORBIDDEN = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the "
    "view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
AS_IT_IS = (
    " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
    "logic to handle view+inplace would override the custom backward associated with the custom Function, leading to "
    "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
REFUSED = {
    "multi": " This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "no_grad": FORBIDDEN,
    "inference": FORBIDDEN.replace("no_grad", "inference_mode"),
    "function": AS_IT_IS,
    "as it is": AS_IT_IS,
}


def refusal(view: Tensor, changed: str) -> str:
    """Why a view may not be changed, or not be used after a change."""
    kind, edge = view._view.kind, view._edge
    first = edge is None or edge is LEAF or isinstance(edge, Severed)
    name = "" if first else f"Output {edge.nr} of {edge.node.name().removesuffix('0').removesuffix('Backward')}"
    if kind in ("no_grad", "inference") or first:
        what = "A view was created" if first else f"{name} is a view of a view which was created"
        mode, now = ("inference", "in normal mode") if kind == "inference" else ("no_grad", "with grad mode enabled")
        start = f"{what} in {mode} mode and {changed} modified inplace {now}."
    else:
        start = f"{name} is a view and {changed} modified inplace."
    return start + REFUSED[kind]


def reshaped(tensor: Tensor, former: tuple[Any, ...]) -> None:
    """Note that `.data` gave a tensor another shape: nodes made before refuse it then.  former: its storage and shape before."""
    reshape(tensor, former, next_seq())


Tensor._refresh = staticmethod(refresh)
Tensor._reshaped = staticmethod(reshaped)
