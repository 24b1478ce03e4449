"""What a node shows of what it saved: `_saved_x` and `_raw_saved_x`, by PyTorch's names and by ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.dispatch.keeping.masks import Mask
from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.dispatch.keeping.shown import plain, value_of
from rushlight.dispatch.plan import OpNode, fetch, input_tensor
from rushlight.engine.saved import Packed, PackedResults, SavedOutput, SavedTensor, freed
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.engine.node import Node


def resolved(op: Op, name: str) -> str:
    """Our name of what PyTorch calls `name`."""
    known = (*op.tensors, *op.static_names, *op.out_names, *op.aux)
    if name in known:
        return name
    if name == "self":
        return str(op.tensors[0]) if op.tensors else ""
    if name == "result":
        return str(op.out_names[0])
    other = op.saved_as.get(name, "")
    return other if isinstance(other, str) else ""


def position(node: OpNode, name: str) -> int:
    """The position of the input that PyTorch calls `name`.  Raises LookupError where there is none."""
    tensors = list(node.plan.op.tensors)
    wanted = resolved(node.plan.op, name)
    if wanted not in tensors:
        raise LookupError(name)
    return tensors.index(wanted)


def saved_attribute(node: OpNode, name: str) -> object:
    """`node._saved_x`: a saved input, output or static of that name; `node._raw_saved_x`: a `SavedTensor` of it."""
    raw = name.startswith("_raw_saved_")
    op, asked = node.plan.op, name.removeprefix("_raw").removeprefix("_saved_")
    wanted = resolved(op, asked)
    tensors = (*op.tensors, *op.out_names, *op.aux)
    if not raw:
        try:
            return value_of(node, asked, position)
        except LookupError:
            if wanted in op.static_names:
                return plain(wanted, node.statics[op.static_names.index(wanted)])
    if wanted not in tensors:
        raise AttributeError(f"{node.name()!r} object has no attribute {name!r}")
    sequence = wanted in op.tensors and op.tensors.index(wanted) == op.sequence
    if raw and not sequence:
        return OperatorsTensor._of(node, wanted)
    if node.saved is None and node.plan.saves:
        freed(node)
    if not is_saved(node, wanted):
        return None
    return listed(node, wanted, raw) if sequence else fetch(node, wanted, None, True, ())


def listed(node: OpNode, name: str, raw: bool) -> tuple[object, ...]:
    """What was saved of a list of tensors; of indices None, or a `SavedTensor` of nothing, where a dimension is taken whole."""
    op, first = node.plan.op, node.plan.op.sequence
    found = fetch(node, name, None, True, ())
    slots = node.statics[op.static_names.index("slots")] if "slots" in op.static_names else range(len(found))
    if raw:
        return tuple(OperatorsTensor._of(node, name, -1 if k is None else first + k) for k in slots)
    return tuple(None if k is None else found[k] for k in slots)


def is_saved(node: OpNode, name: str) -> bool:
    """Whether a node kept the input, output or auxiliary result of that name."""
    op, plan = node.plan.op, node.plan
    if name in op.tensors:
        i = op.tensors.index(name)
        return i in plan.save_inputs
    if name in op.out_names:
        return op.out_names.index(name) in plan.save_outs
    return bool(plan.save_aux)


def saved_names(node: OpNode) -> list[str]:
    """The names that `dir(node)` shows."""
    op = node.plan.op
    inputs = ["self" if i == 0 else name for i, name in enumerate(op.tensors)]
    outs = ["result" if name == "out" else name for name in op.out_names]
    tensors = [*inputs, *(o for i, o in enumerate(outs) if i in node.plan.save_outs)]
    names = [f"_saved_{n}" for n in (*tensors, *op.static_names, *op.saved_as)]
    return [*names, *(f"_raw_saved_{n}" for n in tensors)]


class OperatorsTensor(SavedTensor):
    """A place in the node of an operator."""

    __slots__ = ("name", "node", "place")

    node: Any
    name: str
    place: int | None

    @classmethod
    def _of(cls, node: Node, name: str, place: int | None = None) -> OperatorsTensor:
        """place: of one of a list, its position among the inputs; -1 where there is none."""
        made = object.__new__(cls)
        made.node, made.name, made.place = node, name, place
        return made

    def position(self) -> int:
        """Its place among the node's inputs."""
        return int(self.node.plan.op.tensors.index(self.name)) if self.place is None else self.place

    @property
    def data(self) -> Any:
        """The tensor outside of the graph, or what a pack hook made of it; None where it was freed or there is none."""
        if self.node.saved is None or not is_saved(self.node, self.name) or self.place == -1:
            return None
        kept = self.kept()
        if isinstance(kept, Packed):
            return kept.packed
        found: Tensor = (
            fetch(self.node, self.name, None, True, ()) if self.place is None else input_tensor(self.node, self.place)
        )
        return found.detach()

    @property
    def unpack_hook(self) -> Callable[..., Any] | None:
        """What makes a tensor of `data`: the hook, of nested ones the function that calls them all; None where there is none."""
        kept = None if self.node.saved is None else self.kept()
        if not isinstance(kept, Packed):
            return None
        return kept.hooks[0][1] if len(kept.hooks) == 1 else kept.restored

    def register_hooks(
        self, pack_hook: Callable[..., Any] | None = None, unpack_hook: Callable[..., Any] | None = None
    ) -> None:
        """Keep what `pack_hook(tensor)` returns instead; `unpack_hook` gives the tensor back for backward.

        Raises RuntimeError where the graph was freed, where there is no tensor, and where it is packed by hooks already.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError(
                "register_hooks(): incompatible function arguments: it takes two functions, pack_hook and unpack_hook"
            )
        node, name = self.node, self.name
        if node.saved is None and node.plan.saves:
            freed(node, "Calling register_hooks on a saved tensor after it has been freed. ")
        kept = self.kept()
        if kept is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(kept, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                "is allowed at a time."
            )
        tensor = (
            kept if isinstance(kept, Tensor) else kept.tensor(None) if isinstance(kept, SavedOutput) else wrap(kept)
        )
        self.replace(Packed(tensor, ((pack_hook, unpack_hook),), (node.plan.op.name, name)))

    def kept(self) -> Tensor | SavedOutput | Packed | Array | None:
        """What the node keeps there: a tensor, an output, an array, something packed, or None."""
        node, name = self.node, self.name
        op = node.plan.op
        if not is_saved(node, name) or self.place == -1:
            return None
        if name in op.tensors:
            kept = node.saved[self.position()]
            return (
                kept.tensor(None)
                if isinstance(kept, (Rebuilt, Mask))
                else kept
                if isinstance(kept, (Tensor, Packed))
                else None
            )
        if name in op.out_names:
            out = node.outs[op.out_names.index(name)]
            return out.tensor(None) if out.__class__ is Rebuilt else out
        found = (node.aux.items if isinstance(node.aux, PackedResults) else node.aux)[op.aux.index(name)]
        return found if isinstance(found, (Packed, np.ndarray)) else None

    def replace(self, packed: Packed) -> None:
        """Have the node keep `packed` instead."""
        node, name = self.node, self.name
        op = node.plan.op
        if name in op.tensors:
            items = list(node.saved)
            items[self.position()] = packed
            node.saved = tuple(items)
        elif name in op.out_names:
            items = list(node.outs)
            items[op.out_names.index(name)] = packed
            node.outs = items
        else:
            items = list(node.aux.items if isinstance(node.aux, PackedResults) else node.aux)
            items[op.aux.index(name)] = packed
            kept = node.aux if isinstance(node.aux, PackedResults) else PackedResults(())
            node.aux = kept.replaced(tuple(items))
