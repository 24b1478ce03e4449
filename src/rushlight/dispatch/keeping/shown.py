"""PyTorch's names of what nodes know besides the tensors that they keep: sizes, and arguments that have other names here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rushlight.engine.node import Node, Port
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.dispatch.plan import OpNode

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
LAST = (1 << 63) - 1  # where a slice to the end of a dimension ends

# What callers say of a result, by its node: of arguments that its operator does not get.
_noted: WeakKeyDictionary[Node, dict[str, object]] = WeakKeyDictionary()


def note(result: object, **values: object) -> None:
    """Have the node of a result show these as `_saved_x`, if it has one."""
    node = getattr(result, "_edge", None)
    if isinstance(node, Node):
        _noted[node] = values


def static(node: OpNode, name: str) -> object:
    """An argument of a node that is no tensor."""
    return node.statics[node.plan.op.static_names.index(name)]


def slice_of(node: OpNode) -> tuple[int, slice]:
    """The first dimension that a slice does not take whole, and what it takes of it."""
    index = [i for i in static(node, "index") if i is not Ellipsis]  # type: ignore[attr-defined]
    dim = next((d for d, i in enumerate(index) if i != slice(None)), 0)
    return dim, index[dim]


def end_of(node: OpNode) -> int:
    """Where a slice ends."""
    stop = slice_of(node)[1].stop
    return LAST if stop is None else int(stop)


def unsqueezed(node: OpNode) -> int:
    """The dimension that was put in: of several of size 1 the first."""
    shape, before = static(node, "shape"), input_shape(node, 0)
    same = (a == b for a, b in zip(shape, before, strict=False))  # type: ignore[call-overload]
    return next((d for d, equal in enumerate(same) if not equal), len(before))


def geometry(k: int) -> Callable[[OpNode], object]:
    """A part of the geometry of a pool."""
    return lambda node: static(node, "geometry")[k]  # type: ignore[index]


def always(value: object) -> Callable[[OpNode], object]:
    """The same for every node."""
    return lambda node: value


def first(name: str) -> Callable[[OpNode], object]:
    """The first element of an argument."""
    return lambda node: static(node, name)[0]  # type: ignore[index]


def normalized(node: OpNode) -> object:
    """The sizes of the dimensions that a layer norm goes over."""
    return node.shape[len(node.shape) - int(static(node, "k")) :]  # type: ignore[call-overload]


def no_padding(node: OpNode) -> object:
    """A convolution's padding of its result: none."""
    return (0,) * len(static(node, "stride"))  # type: ignore[arg-type]


def bias_sizes(node: OpNode) -> object:
    """The shape of a convolution's bias, or None."""
    return node.shapes[2] or None


SLICE: dict[str, Callable[[OpNode], object]] = {
    "dim": lambda node: slice_of(node)[0], "start": lambda node: slice_of(node)[1].start or 0, "end": end_of,
    "step": lambda node: slice_of(node)[1].step or 1}  # fmt: skip
SELECT: dict[str, Callable[[OpNode], object]] = {
    "dim": lambda node: slice_of(node)[0],
    "index": lambda node: slice_of(node)[1],
}
GEOMETRY = {name: geometry(k) for k, name in enumerate(("kernel_size", "stride", "padding", "dilation"))}


def input_shape(node: OpNode, position: int) -> tuple[int, ...]:
    """The shape of an input, of what the node knows of it.  Raises LookupError where that is nothing."""
    edge, saved = node.edges[position], node.saved
    if isinstance(edge, (Tensor, Node, Port)):
        return tuple(edge.node.shape[edge.nr] if isinstance(edge, Port) else edge.shape)
    if node.shapes is not None and node.shapes[position] is not None:
        return tuple(node.shapes[position])
    if saved is None or not isinstance(saved[position], Tensor):
        raise LookupError(position)
    return tuple(saved[position].shape)


_SIZES = re.compile(r"(\w+?)_sym_(sizes|numel|strides|argsize_(?:minus_)?\d+)$")


def size(node: OpNode, name: str, resolved: Callable[[OpNode, str], int]) -> object:
    """`self_sym_sizes` and its like.  resolved: the position of an input, by PyTorch's name.  Raises LookupError for others."""
    found = _SIZES.match(name)
    if found is None:
        raise LookupError(name)
    position, what = resolved(node, found[1]), found[2]
    if what == "strides":
        kept = node.saved[position] if node.saved is not None else None
        if not isinstance(kept, Tensor):
            raise LookupError(name)
        return kept.stride()
    shape = input_shape(node, position)
    if what.startswith("argsize_"):
        return shape[int(what.removeprefix("argsize_").replace("minus_", "-"))]
    return shape if what == "sizes" else math.prod(shape)


def plain(name: str, value: object) -> object:
    """An argument as PyTorch keeps it: reductions are numbers there, and numbers are no tensors."""
    if name == "reduction" and isinstance(value, str):
        return REDUCTIONS.get(value, value)
    if isinstance(value, Tensor) and not value.shape:
        return value.item()
    return int(value) if name == "correction" and isinstance(value, float) and value.is_integer() else value


def value_of(node: OpNode, name: str, resolved: Callable[[OpNode, str], int]) -> object:
    """What a node shows by a name that is none of its arguments.  Raises LookupError where it knows none."""
    noted = _noted.get(node, {})
    if name in noted:
        return noted[name]
    made = node.plan.op.saved_as.get(name)
    return made(node) if callable(made) else size(node, name, resolved)
