"""A budget sleeps until memory is short: all there is of it by then is the allocator's limit.

So it costs nothing where it is never reached, and what operators keep is what they keep without it. When room is asked for
the first time, what nodes of the graph have saved so far becomes pages, and the pager looks on from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.autograd.function import FunctionNode
from rushlight.basics import heap
from rushlight.basics.state import modes, set_mode
from rushlight.checkpoint.frame import Input
from rushlight.dispatch.keeping.remade import Live, Rebuilt
from rushlight.dispatch.plan import OpNode
from rushlight.engine.node import Node, Port, edge_of, edge_or_refusal
from rushlight.engine.saved import Packed, PackedResults, SavedOutput, Sparing
from rushlight.kernels import allocator
from rushlight.memory.budgets import pages
from rushlight.memory.budgets.pages import Kept, View, whole
from rushlight.memory.counting.holders import collected_of
from rushlight.storage import root_of
from rushlight.tensor import LEAF, Tensor, wrap

if TYPE_CHECKING:
    from rushlight.memory.budgets.pager import Pager


class Waking:
    """Wakes a pager, in the thread that makes this, and lets it sleep again at the end of its budget.

    pair: the hooks through which saved tensors become pages.
    """

    def __init__(self, pager: Pager):
        self.pager = pager
        self.pair = Sparing((pager.pack, pager.unpack))
        self.values = modes.__dict__  # of this thread
        self.outer = modes.saved_hooks
        self.awake, self.former = False, False
        modes.sleeper = pager.wake = self.wake

    def begin(self) -> None:
        """Look on at once where hooks or observers are there already, so as to be within them."""
        if self.outer or modes.observers:
            self.wake()

    def wake(self, again: bool = False) -> None:
        """Have the pager see all that can be paged, from now on; to be called whenever memory is short.

        again: look once more at what was saved: the operator in which the pager woke may have saved without it, when it ended.
        """
        with self.pager.lock:
            first, self.awake = not self.awake, True
            if first:
                self.former = heap.exact(True)
                allocator.library().exact(True)
                self.pager.adopt_all()
            if self.watches() or first or again:
                adopt_saved(self.pager, self.pair)

    def watches(self) -> bool:
        """Look on in the thread that entered the budget; whether that is new: contexts may put back what was before it woke."""
        if (
            modes.__dict__ is not self.values
            or modes.saved_hooks != self.outer
            or modes.saved_hooks_disabled is not None
        ):
            return False
        set_mode("saved_hooks", (*self.outer, self.pair))
        if self.pager not in modes.observers:
            set_mode("observers", (*modes.observers, self.pager))
        return True

    def end(self) -> None:
        """The budget ends, in the thread that entered it."""
        modes.sleeper = self.pager.wake = None
        if self.awake:
            set_mode("saved_hooks", tuple(pair for pair in modes.saved_hooks if pair is not self.pair))
            set_mode("observers", tuple(x for x in modes.observers if x is not self.pager))
            allocator.library().exact(False)
            heap.exact(self.former)


def adopt_saved(pager: Pager, pair: Sparing) -> None:
    """Make pages of what the nodes of all graphs keep, in the order in which it was saved, and of inputs of checkpoints."""
    hooks, found = (pair,), collected_of(OpNode, FunctionNode, Input)
    nodes = sorted((x for x in found if x.__class__ is not Input), key=number)
    for node in nodes:
        (adopt_function if isinstance(node, FunctionNode) else adopt_node)(node, hooks)
    for x in found:
        if x.__class__ is Input:
            adopt_input(x, hooks)
    for node in nodes:
        for x in (*(getattr(node, "saved", None) or ()), *(getattr(node, "outs", None) or ())):
            if x.__class__ is Rebuilt:
                adopt_sources(x, pager, hooks)


def number(node: Any) -> int:
    """The place of a node in the order of recording."""
    return int(getattr(node, "seq", -1))


def pageable(tensor: object) -> bool:
    """Whether a tensor that was saved may become a page: of an operator, on memory of its own."""
    if type(tensor) is not Tensor or tensor._edge is LEAF or tensor._unusual or tensor._tangents is not None:
        return False
    return large(tensor._held)


def large(array: object) -> bool:
    """Whether an array is worth a page."""
    if array.__class__ is not np.ndarray:
        return False
    root = root_of(array)
    return bool(root.nbytes >= pages.SMALL and whole(root))


def adopt_node(node: OpNode, hooks: object) -> None:
    """What the node of an operator keeps; a node that is being made may lack anything."""
    saved, outs, aux = (getattr(node, name, None) for name in ("saved", "outs", "aux"))
    if not saved or getattr(node, "plan", None) is None:
        return
    op = node.plan.op
    if not node.plan.takes_deferred:  # it compares what it kept with what it was given
        inputs = [packed_input(node, i, x, hooks) for i, x in enumerate(saved)]
        if node.saved is saved:  # no other thread has run it
            node.saved = inputs
    if outs:
        results = tuple(packed_result(x, hooks, (op.name, op.out_names[k])) for k, x in enumerate(outs))
        if node.outs is outs:
            node.outs = results
    kept = PackedResults(aux) if aux.__class__ is tuple else aux if isinstance(aux, PackedResults) else None
    if kept is not None and any(map(large, kept.items)):
        beside = kept.replaced(
            tuple(packed_beside(x, hooks, (op.name, name)) for x, name in zip(kept.items, op.aux, strict=True))
        )
        if node.aux is aux:
            node.aux = beside


def packed_input(node: OpNode, i: int, x: Any, hooks: Any) -> Any:
    """A saved input as a page; itself where it is none, or backward will refuse it."""
    if not pageable(x) or (x._edge is None and x._view is None and isinstance(node.edges[i], (Node, Port))):
        return x
    expected = 0 if node.versions is None else node.versions[i]
    if x._storage is not None and x._storage.version != expected:
        return x
    return Packed(x, hooks, (node.plan.op.name, node.plan.op.input_name(i)))


def packed_result(x: Any, hooks: Any, where: tuple[str, str]) -> Any:
    """The same of a result that its node keeps."""
    if x.__class__ is not SavedOutput or x.tangents is not None or not large(x.array) or x.storage.version != x.version:
        return x
    return Packed(x.tensor(None), hooks, where, True)


def packed_beside(x: Any, hooks: Any, where: tuple[str, str]) -> Any:
    """The same of an auxiliary result."""
    return Packed(wrap(x), hooks, where) if large(x) else x


def adopt_function(node: Node, hooks: object) -> None:
    """What the node of a custom function keeps."""
    ctx: Any = getattr(node, "ctx", None)
    saved = getattr(ctx, "_saved", None)
    if saved:
        kept = [None if entry is None else packed_entry(ctx, entry, hooks) for entry in saved]
        if ctx._saved is saved:
            ctx._saved = kept


def packed_entry(ctx: Any, entry: tuple[Any, Any, int], hooks: Any) -> tuple[Any, Any, int]:
    """What a custom function saved: see `FunctionCtx._save`."""
    kept, edge, version = entry
    if kept.__class__ is SavedOutput:
        return packed_result(kept, hooks, (ctx.name(), "result")), edge, version
    if not pageable(kept) or kept._version != version:
        return kept, edge, version
    return Packed(kept, hooks, (ctx.name(), "a saved tensor")), edge_or_refusal(kept), 0


def adopt_input(kept: Any, hooks: Any) -> None:
    """What a checkpoint keeps to run its function again."""
    t: Any = getattr(kept, "tensor", None)
    if getattr(kept, "kept", None) is None and pageable(t) and t._version == kept.version:
        if not kept.inside or t._edge is not None or t._view is not None:
            kept.kept, kept.tensor = Packed(t, hooks, ("checkpoint", "input")), edge_of(t)


def adopt_sources(made: Rebuilt, pager: Pager, hooks: Any) -> None:
    """What a saved input is computed from again: the pages of memory that nodes keep, in place of the memory."""
    made.asks, made.left = 0, None
    for i, x in enumerate(made.saved):
        if x.__class__ is Rebuilt:
            adopt_sources(x, pager, hooks)
        elif x.__class__ is Live:
            root = root_of(x._array)
            page = pager.known_page(root)
            if page is not None and page.later == page.version:
                kept = Kept(page, None if x._array is root else View(x._array, root))
                made.saved[i] = Packed(kept.tensor(), hooks)
