"""Saved inputs that are not kept but computed again: what a cheap operator made of what its own node keeps anyway.

The weight gradient of a linear layer wants the layer's input.  Where that is the result of GELU or a layer norm, the
node of that operator keeps what it was computed from, so keeping the result too saves only a pass over memory, and
doubles the bytes.  A product costs hundreds of times that pass.
"""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.engine.saved import Constant, Packed, Sparing, stale
from rushlight.engine.views import chain_of, replay
from rushlight.ops.compute import compute
from rushlight.state import modes
from rushlight.tensor import Tensor, wrap

LARGE = 1 << 18  # bytes from which on memory is worth more than the pass


class _Ask:
    """In `_storage`: sends whoever reads a saved input to `plan.input_array`."""


class Rebuilt:
    """An input as the operator that made it, and what that keeps: the same objects as its node's, no more memory.

    seen: a weak reference to the tensor, which may have been changed in place while it lives, and its version then.
    """

    __slots__ = ("chain", "op", "saved", "seen", "statics", "version", "versions")
    _storage = _edge = _Ask

    def __init__(self, tensor: Tensor, node: Any, chain: tuple[Any, ...]):
        """tensor: the result of `node`; chain: the views that make the input of it."""
        self.chain, self.op, self.saved, self.versions, self.statics = (
            chain,
            node.plan.op,
            node.saved,
            node.versions,
            node.statics,
        )
        self.seen, self.version = weakref.ref(tensor), tensor._version

    def array(self, node: Any, i: int) -> Any:
        """The input, for the node that asks for its input at position `i`.  RuntimeError if memory was changed since."""
        tensor = self.seen()
        if tensor is not None and tensor._version != self.version:
            stale(node, f"argument {node.argument(i)!r}", tensor._array.shape, tensor._version, self.version, tensor._storage,
                  tensor._edge)  # fmt: skip
        for k, x in enumerate(self.saved):
            version = 0 if self.versions is None else self.versions[k]
            if isinstance(x, Tensor) and x._version != version:
                stale(node, f"argument {node.argument(i)!r} (which {self.op.name} makes of its "
                      f"{self.op.input_name(k)!r})", x._array.shape, x._version, version, x._storage, x._edge)  # fmt: skip
        return self._array

    @property
    def _array(self) -> Any:
        arrays = [None if x is None else x._array for x in self.saved]
        return replay(self.chain, compute(self.op, arrays, self.statics)[0][0])

    def tensor(self, edge: Any) -> Tensor:
        """The input as a tensor with its place in the graph."""
        t = wrap(self._array)
        t._edge = edge
        return t


def may_rebuild() -> bool:
    """Whether inputs may be computed again: nobody but hooks that do without is to be given them, and no level is active."""
    return all(level.dry for level in modes.levels) and all(isinstance(pair, Sparing) for pair in modes.saved_hooks)


def rebuilt(tensor: Tensor) -> Any:
    """What to save in place of a tensor: itself, unless it can be computed again for little."""
    if tensor._array.nbytes < LARGE:
        return tensor
    base = tensor if tensor._view is None else tensor._view.base
    node = base._edge
    plan = getattr(node, "plan", None)
    if plan is None or not plan.op.cheap or node.saved is None or len(plan.save_inputs) < len(plan.op.tensors):
        return tensor
    chain = () if base is tensor else chain_of(tensor)
    if all(x is None or isinstance(x, (Tensor, Constant, Packed)) for x in node.saved):
        return Rebuilt(base, node, chain)
    return tensor


def keep_inputs(node: Any, inputs: tuple[Any, ...], wanted: tuple[int, ...]) -> None:
    """As `fast.keep_inputs`, for an operator that costs much more than reading its inputs once."""
    saved: list[Any] = [None] * len(inputs)
    for i in wanted:
        x = inputs[i]
        if not isinstance(x, Tensor):
            saved[i] = None if x is None else Constant(x)
            continue
        saved[i] = kept = x if x._edge is None else rebuilt(x)
        if kept is x and x._storage is not None and x._storage.version:
            if node.versions is None:
                node.versions = [0] * len(inputs)
            node.versions[i] = x._storage.version
    node.saved = saved
