"""Memory of a saved input that its gradient may be written over: nobody will look at it again.

The gradient of cross entropy has the logits' size and needs them element by element.  A run that drops what a node saved when
the node has run, and finds that nothing but the node holds the logits, writes the gradient where they are.
"""

from __future__ import annotations

import weakref
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.references import untraced
from rushlight.basics.state import modes
from rushlight.dispatch.keeping.steady import let_go
from rushlight.engine.saved import Packed
from rushlight.storage import Storage, is_exposed, settle
from rushlight.tensor import LEAF, Tensor, ViewInfo, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.plan import OpNode

LARGE = 1 << 18  # bytes from which on memory is worth looking


def spare(node: OpNode, i: int) -> Array | None:
    """The array of the input at position `i`, to be overwritten; None where anybody may look at it after this node has run.

    C-contiguous, of the input's shape and dtype.  Who asks has not fetched the input yet.
    """
    run = modes.run
    if run is None or run.keep or run.create or run.dry or not all(level.dry for level in modes.levels):
        return None
    if node.saved[i].__class__ is Packed:
        return packed_spare(node, i)
    if node.saved[i].__class__ is not Tensor or node.saved[i]._held.nbytes < LARGE:
        return None
    if not may_go(node.saved[i]) or holders(node.saved, i) not in ALONE:
        return None
    array: Array = node.saved[i]._held
    let_go(node)
    settle(array)
    return array


def packed_spare(node: OpNode, i: int) -> Array | None:
    """The same of an input that hooks keep which know whether anybody else has its memory, such as those of a budget."""
    if getrefcount(node.saved[i]) > ALONE_PACKED:
        return None
    kept = node.saved[i]
    if kept.tangents is not None or len(kept.hooks) != 1 or not hasattr(kept.packed, "spare"):
        return None
    array: Array | None = kept.packed.spare(LARGE)
    if array is None or (is_exposed(array) and not modes.levels):
        return None
    let_go(node)
    settle(array)
    return array


def may_go(tensor: Tensor) -> bool:
    """Whether the memory of a tensor is an operator's result, and no view of a part or of what it is the base of."""
    array, view = tensor._held, tensor._view
    base = tensor if view is None else view.base
    if tensor._edge in (None, LEAF) or base._edge in (None, LEAF) or tensor._unusual or base.__class__ is not Tensor:
        return False
    if base._unusual or base._storage is not tensor._storage or base._held.nbytes != array.nbytes:
        return False
    if weakref.getweakrefcount(tensor) or weakref.getweakrefcount(base) or (is_exposed(array) and not modes.levels):
        return False
    return bool(array.flags.c_contiguous and array.flags.writeable)


def holders(saved: list[Tensor], i: int) -> tuple[int, ...]:
    """How many hold a saved tensor, its base, their arrays and their memory, but for the histories of views between them."""
    view, storage = saved[i]._view, saved[i]._storage
    root = saved[i]._held if saved[i]._held.base.__class__ is not np.ndarray else saved[i]._held.base
    found = [getrefcount(saved[i]), getrefcount(saved[i]._held), 0 if storage is None else getrefcount(storage)]
    if view is None:
        return (*found, getrefcount(root))
    steps, most, own = 0, 0, root is view.base._held
    while view is not None:
        steps, most, last, view = steps + 1, max(most, getrefcount(view)), view, view.parent
    return (
        *found,
        getrefcount(root) - steps * own,
        getrefcount(last.base) - steps,
        getrefcount(last.base._held) - steps,
        most,
    )


@untraced
def _alone() -> set[tuple[int, ...]]:
    """What `holders` says of tensors that nobody else holds: a result, shaped or not, and views of both, of views too."""
    found = set()
    for shaped in (False, True):
        for views in range(3):
            for stored in (False, True):
                saved: Any = [_example(shaped, views, stored)]
                found.add(holders(saved, 0))
    return found


def _example(shaped: bool, views: int, stored: bool) -> Tensor:
    made = wrap(np.empty(4).reshape(2, 2) if shaped else np.empty(4))
    if stored or views:
        made._storage = Storage(made._held)
    for _ in range(views):
        of, made = made, wrap(made._held.reshape(1, 4))
        made._storage, made._view, parent = of._storage, ViewInfo(), of._view
        made._view.parent = parent
        made._view.base, made._view.array = (of, of._held) if parent is None else (parent.base, parent.array)
    return made


@untraced
def _alone_packed() -> int:
    saved = [object()]
    return getrefcount(saved[0])


ALONE, ALONE_PACKED = _alone(), _alone_packed()
