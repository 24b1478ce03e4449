"""What a picture shows: boxes and arrows, found by walking the graph from its outputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.autograd.function import FunctionNode
from rushlight.autograd.graph import get_gradient_edge
from rushlight.basics import dtypes
from rushlight.dispatch.keeping.masks import Mask
from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.dispatch.plan import OpNode
from rushlight.engine.node import AccumulateGrad, Node
from rushlight.engine.saved import OfView, Packed, SavedOutput
from rushlight.tensor import Tensor

OUTPUT, NODE, CUSTOM, LEAF, SAVED, MORE = "output", "node", "custom", "leaf", "saved", "more"


class Box:
    """A box.  kind: one of those above; title and detail: its two lines; note: more, shown under the pointer."""

    __slots__ = ("detail", "inputs", "key", "kind", "note", "rank", "title")

    def __init__(self, key: str, kind: str, title: str, detail: str = "", note: str = ""):
        self.key, self.kind, self.title, self.detail, self.note = key, kind, title, detail, note
        self.rank = 0
        self.inputs: list[Arrow] = []


class Arrow:
    """An arrow into a box.  saved: for a tensor that the box keeps; label: its name there."""

    __slots__ = ("label", "saved", "source")

    def __init__(self, source: Box, saved: bool = False, label: str = ""):
        self.source, self.saved, self.label = source, saved, label


class Model:
    """The boxes, outputs first, and the figures for the legend."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.counts = {"nodes": 0, "leaves": 0, "saved": 0, "bytes": 0, "hidden": 0}

    def add(self, box: Box) -> Box:
        """Append a box."""
        self.boxes.append(box)
        return box


def shape_text(shape: Any, dtype: Any) -> str:
    """A shape and a dtype as text; of several outputs, how many there are."""
    if isinstance(shape, list):
        return f"{len(shape)} outputs"
    sizes = "scalar" if tuple(shape) == () else f"({', '.join(map(str, shape))})"
    return f"{sizes} {dtypes.of(dtype).name}"


def bytes_text(n: int) -> str:
    """Bytes as text.

    >>> bytes_text(20), bytes_text(3 << 20)
    ('20 B', '3.0 MiB')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


class Kept:
    """A tensor that a node keeps: its name there and, unless hooks packed it, its array."""

    __slots__ = ("array", "name")

    def __init__(self, name: str, array: Any):
        self.name, self.array = name, array


def kept_by(node: object) -> Iterator[Kept]:
    """The tensors that a node keeps.  Nothing is unpacked: hooks may have side effects."""
    if isinstance(node, FunctionNode):
        for i, entry in enumerate(node.ctx._saved or ()):
            if entry is not None:
                yield Kept(f"saved {i}", array_of(entry[0]))
    elif isinstance(node, OpNode):
        op = node.plan.op
        for i, entry in enumerate(node.saved or ()):
            if isinstance(entry, (Tensor, Packed, Mask)):
                yield Kept("self" if i == 0 and op.input_name(0) == "input" else op.input_name(i), array_of(entry))
        for name, entry in zip(op.out_names, node.outs or ()):
            if entry is not None:
                yield Kept("result" if name == "out" else name, array_of(entry))
        for name, entry in zip(op.aux, getattr(node.aux, "items", node.aux) or ()):
            if isinstance(entry, (np.ndarray, Packed)):
                yield Kept(name, array_of(entry))


def array_of(entry: object) -> Any:
    """The array of a saved entry; None of one that hooks packed."""
    if isinstance(entry, OfView):
        entry = entry.saved
    if isinstance(entry, SavedOutput):
        return entry.array
    if isinstance(entry, Packed):
        return None
    if isinstance(entry, Mask):
        return entry.memory
    if isinstance(entry, Rebuilt):
        return None  # it is computed again
    return entry._array if isinstance(entry, Tensor) else getattr(entry, "array", entry)  # relu's bits


def identity(array: Any) -> tuple[int, Any, Any]:
    """What two arrays on the same elements have in common."""
    return int(array.ctypes.data), array.shape, array.strides


def outputs_of(y: object) -> list[tuple[str, Any]]:
    """(name, tensor or node) of what a picture begins with."""
    if isinstance(y, (Tensor, Node)):
        return [("output", y)]
    if isinstance(y, dict):
        return [(str(name), t) for name, t in y.items()]
    if isinstance(y, (tuple, list)):
        return [(f"output {i}", t) for i, t in enumerate(y)]
    raise TypeError(f"viz.graph(): expected a Tensor, a node, or a sequence or dict of them, got {type(y).__name__}")


def names_of(params: Any) -> dict[int, str]:
    """{id of tensor: name} from a module, a dict, or pairs of name and tensor."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    pairs = params.items() if isinstance(params, dict) else params
    return {id(t): str(name) for name, t in pairs}


class Walk:
    """Walks the graph, the nodes nearest to the outputs first, and makes the boxes of the first `limit` of them."""

    def __init__(self, names: dict[int, str], show_saved: bool, limit: int):
        self.names, self.show_saved, self.limit = names, show_saved, limit
        self.model = Model()
        self.boxes: dict[Any, Box] = {}
        self.saved: dict[Any, Box] = {}
        self.more: Box | None = None

    def run(self, outputs: list[tuple[str, Any]]) -> Model:
        """The model."""
        queue: deque[Any] = deque()
        for name, y in outputs:
            node = y if isinstance(y, Node) else self.node_of(y, name)
            if isinstance(y, Tensor):
                name = self.names.get(id(y), name)
                box = self.model.add(Box(f"o{len(self.model.boxes)}", OUTPUT, name,
                                         shape_text(y._array.shape, y._array.dtype)))  # fmt: skip
                box.inputs.append(Arrow(self.visit(node, queue)))
            else:
                self.visit(node, queue)
        while queue:
            node, box = queue.popleft()
            for source, _ in node.next_functions:
                if source is not None:
                    self.link(box, self.visit(source, queue))
            if self.show_saved and box is not self.more:
                self.keep(node, box)
        if self.more is not None:
            hidden = self.model.counts["hidden"]
            self.more.title, self.more.detail = f"… {hidden:,} more", "raise max_nodes to see them"
        return self.model

    def node_of(self, y: object, name: str) -> Any:
        """The node that a tensor comes from.  Raises for what has no graph."""
        if not isinstance(y, Tensor):
            raise TypeError(f"viz.graph(): expected {name} to be a Tensor or a node, got {type(y).__name__}")
        if not y.requires_grad:
            raise ValueError(f"viz.graph(): {name} does not require grad, so there is no graph to draw: was it computed "
                             "from tensors that require grad, outside of no_grad?")  # fmt: skip

        return get_gradient_edge(y).node

    def link(self, box: Box, source: Box) -> None:
        """An arrow, unless it goes to hidden nodes (some of which come before `source`, some after) or says nothing new."""
        if box is self.more or (source is self.more and any(a.source is source for a in box.inputs)):
            return
        box.inputs.append(Arrow(source))

    def visit(self, node: object, queue: deque[Any]) -> Box:
        """The box of a node, made at the first visit."""
        key = node.variable if isinstance(node, AccumulateGrad) else node
        if key in self.boxes:
            return self.boxes[key]
        self.model.counts["leaves" if isinstance(node, AccumulateGrad) else "nodes"] += 1
        if len(self.boxes) - self.model.counts["hidden"] >= self.limit:
            self.model.counts["hidden"] += 1
            if self.more is None:
                self.more = self.model.add(Box("more", MORE, ""))
            box = self.more
        else:
            box = self.model.add(self.leaf(node) if isinstance(node, AccumulateGrad) else self.node(node))
        self.boxes[key] = box
        if not isinstance(node, AccumulateGrad):
            queue.append((node, box))
        return box

    def leaf(self, node: AccumulateGrad) -> Box:
        leaf = node.variable
        grad = "no gradient yet" if leaf.grad is None else "has a gradient"
        title = self.names.get(id(leaf), "parameter" if type(leaf).__name__ == "Parameter" else "leaf")
        box = Box(f"l{len(self.boxes)}", LEAF, title, shape_text(leaf._array.shape, leaf._array.dtype),
                  f"AccumulateGrad · {bytes_text(leaf._array.nbytes)} · {grad}")  # fmt: skip
        self.saved[identity(leaf._array)] = box
        return box

    def node(self, node: Any) -> Box:
        kind = CUSTOM if isinstance(node, FunctionNode) else NODE
        note = f"sequence number {node.seq}" + ("" if not node.extra else " · has hooks or notes")
        return Box(f"n{len(self.boxes)}", kind, node.name(), shape_text(node.shape, node.dtype), note)

    def keep(self, node: Any, box: Box) -> None:
        """The boxes of what a node keeps, one for each memory; of a leaf's memory it is the leaf's box."""
        for kept in kept_by(node):
            if kept.array is None:
                self.model.counts["saved"] += 1
                made = self.model.add(Box(f"s{len(self.model.boxes)}", SAVED, kept.name, "packed by hooks"))
                box.inputs.append(Arrow(made, True, kept.name))
                continue
            key = identity(kept.array)
            if key not in self.saved:
                self.model.counts["saved"] += 1
                self.model.counts["bytes"] += kept.array.nbytes
                self.saved[key] = self.model.add(Box(f"s{len(self.model.boxes)}", SAVED, kept.name,
                    shape_text(kept.array.shape, kept.array.dtype), bytes_text(kept.array.nbytes)))  # fmt: skip
            box.inputs.append(Arrow(self.saved[key], True, kept.name))
