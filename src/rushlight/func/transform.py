"""What every reverse-mode transformation shares: its inputs, its graph among the others, and its results.

There is one graph for all nested transformations. What a transformation differentiates at is a new tensor whose node,
a `Mark`, leads to the place of the user's tensor in the graph outside, if it has one. So the gradients of an inner
transformation are results like others to an outer one, and a tensor that the function merely captured is a constant to
the inner and not to the outer.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from types import CellType, TracebackType
from typing import Any

from rushlight.basics import tree
from rushlight.basics.arrays import Array
from rushlight.basics.state import modes, set_mode
from rushlight.engine.node import Node, edge_of, next_seq
from rushlight.levels.batch import BatchedArray
from rushlight.storage import storage_of
from rushlight.tensor import Tensor, twin
from rushlight.transforms.batched import BatchedLevel, fresh_leaf, innermost


class Mark(Node):
    """The node of a tensor that a transformation differentiates at: its gradient goes on outside, if anywhere.

    open: whether the transformation still runs, so that the tensor counts as one that requires grad; number: which of the
    transformations that run it is of, the outermost being 1.
    """

    __slots__ = ("number", "open")
    leaf_like = True

    def __init__(self, outer: Any, tensor: Tensor):
        self.edges, self.extra, self.seq, self.open = (outer,), None, next_seq(), True
        self.number = 0 if modes.transform is None else modes.transform.number
        self.shape, self.dtype = tensor._array.shape, tensor._array.dtype

    def run(self, g: Array | Tensor, wanted: int) -> Any:
        return [g]

    run_tensors = run


def marked(x: Tensor, outer: bool) -> Tensor:
    """A tensor with the values of `x` to differentiate at; `outer`: whether gradients of gradients may reach `x`."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    if x._array.dtype.kind in "biu":
        raise RuntimeError(f"only Tensors of floating point and complex dtype can require gradients, got {x.dtype}")
    level = innermost()
    if level is None or level.part(x) is not None:
        t = fresh_leaf(x)
        t._tangents = x._tangents
        if level is None and not x._inference:
            t._storage = storage_of(x)  # which counts changes of either
        t._edge = Mark(edge_of(x) if outer else None, t)
        return t
    x, tangents = around(x, level)  # it belongs to a level around, where it keeps its place in the graph
    t = level.batched(x, None)
    t._tangents = tangents
    t._edge = Mark(None, t)
    return t


def around(x: Tensor, level: BatchedLevel) -> tuple[Tensor, Any]:
    """A tensor without its tangents of dual levels inside the batched `level`, and those."""
    inside = modes.levels[modes.levels.index(level) + 1 :]
    tangents = {k: t for k, t in (x._tangents or {}).items() if k in inside}
    if not tangents:
        return x, None
    bare = twin(x)
    bare._storage, bare._edge = x._storage, edge_of(x)
    bare._tangents = {k: t for k, t in x._tangents.items() if k not in tangents} or None
    return bare, tangents


def alive(tensor: Tensor, seen: set[Any]) -> bool:
    """Whether the graph of a tensor leads to a leaf, or to a mark of a transformation that still runs.

    Of a batched tensor, whether that of the samples or of all samples together does. seen: nodes known to lead to none;
    those found so are added.
    """
    while not leads_out(edge_of(tensor), seen):
        if type(tensor._array) is not BatchedArray:
            return False
        tensor = tensor._array.tensor
    return True


def leads_out(edge: Any, seen: set[Any]) -> bool:
    """Whether a leaf or an open mark can be reached from an edge."""
    stack, visited = [] if edge is None else [edge], set()
    while stack:
        edge = stack.pop()
        if isinstance(edge, Tensor):
            return True
        node = edge.node
        if node in seen or node in visited:
            continue
        if node.__class__ is Mark and node.open:
            return True
        visited.add(node)
        stack += [e for e in node.edges if e is not None]
    seen |= visited
    return False


def tracked(tensor: Tensor) -> tuple[set[int], bool]:
    """The numbers of transformations at whose inputs the graph of a tensor arrives, and whether it does at a leaf outside."""
    numbers, leaf, seen = set(), False, set()
    stack = [edge_of(tensor)]
    while stack:
        edge = stack.pop()
        if edge is None or isinstance(edge, Tensor):
            leaf = leaf or edge is not None
        elif edge.node not in seen:
            seen.add(edge.node)
            if edge.node.__class__ is Mark and edge.node.open:
                numbers.add(edge.node.number)
            stack += edge.node.edges
    return numbers, leaf


def outside(x: Tensor, keep: bool, seen: set[Any]) -> Tensor | None:
    """A result as those outside of the transformation see it: in their graph where it leads to a tensor of theirs.

    keep: whether those outside record a graph at all.
    """
    if not isinstance(x, Tensor):
        return x
    if x._tangents:
        tangents = {level: outside(t, keep, seen) for level, t in x._tangents.items()}
    else:
        tangents = None
    of_input = x._view is not None and x._view.base._edge.__class__ is Mark  # a view that was not recorded
    if keep and ((x._edge is None and not of_input) or leads_out(edge_of(x), seen)):
        t = x
    elif type(x._held) is BatchedArray and not keep:
        t = out_of_graphs(x)
    elif x.requires_grad:
        t = twin(x)
        t._storage = x._storage
        if x._inference:
            t._inference = t._unusual = True
    else:
        t = x
    if tangents is not None:
        t._tangents = tangents
    return t


def out_of_graphs(x: Tensor) -> Tensor:
    """A batched tensor outside of all graphs, with its tangents: unlike that of `detach`, it still depends on what it did."""
    made: Tensor = x._array.level.detached(x)
    t = made
    while type(x._held) is BatchedArray:
        x, made = x._held.tensor, made._held.tensor
        for level in modes.levels:
            tangent = level.tangent_of(x) if hasattr(level, "tangent_of") else None
            if tangent is not None:
                level.give(made, tangent)
    return t


class Transform:
    """The time during which the user's function runs; records gradients whatever the mode outside, inference mode too."""

    def __init__(self) -> None:
        self.marks: list[Any] = []
        self.changed: list[Any] = []
        self.pairs: list[tuple[Tensor, Tensor]] = []  # what it differentiates at, and the tensors that were given
        self.outer: bool = modes.grad  # whether those outside want to differentiate the results
        self.levels = len(modes.levels)  # how many levels were around when it began
        self.around: Transform | None = modes.transform
        self.number = 1 + self.levels + (0 if self.around is None else self.around.within(self.levels))

    def __enter__(self) -> Transform:
        self.former = set_mode("grad", True), set_mode("inference", False)
        modes.transform = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode("grad", self.former[0])
        set_mode("inference", self.former[1])
        modes.transform = self.around
        self.close()

    def within(self, levels: int) -> int:
        """How many of the transformations, this one and those around it, began with at most so many levels around them."""
        return (self.levels <= levels) + (0 if self.around is None else self.around.within(levels))

    def shown(self, tensor: Tensor) -> tuple[list[int], Any]:
        """The numbers of the transformations that track a tensor, in order, and its place in the graph outside of all, if any."""
        found, leaf = tracked(tensor)
        edge = edge_of(tensor) if leaf else None
        while edge is not None and not isinstance(edge, Tensor) and edge.node.__class__ is Mark:
            edge = edge.node.edges[0]
        return sorted(found), edge

    def inputs(self, args: Sequence[Any], outer: bool | None = None) -> Any:
        """The tensors of a tree of arguments, marked.  outer: as in `marked`; None for what the mode outside says."""
        given, spec = tree.tree_flatten(args)
        made = [marked(x, self.outer if outer is None else outer) for x in given]
        self.pairs += zip(made, given, strict=True)
        self.marks += [x._edge for x in made]
        return tree.tree_unflatten(made, spec)

    def close(self) -> None:
        """The transformation is over: to others its inputs are as good as constants."""
        for mark in self.marks:
            mark.open = False

    def settle(self) -> None:
        """Have tensors that were changed in place be constants again, but for what those outside differentiate at.

        To be called when no gradient is asked for any more.
        """
        seen: set[Any] = set()
        for ref, name in self.changed:
            tensor = ref()
            if tensor is None:
                continue
            if not (self.outer and alive(tensor, seen)):
                tensor._edge = None
            elif modes.transform is not None:
                modes.transform.changed.append((ref, name))
        self.changed.clear()

    def results(self, results: Any) -> Any:
        """A tree of results as those outside see them: what was given and is returned unchanged is what was given."""
        seen: set[Any] = set()
        given = {id(x): original for x, original in self.pairs if x._edge.__class__ is Mark}
        found = tree.tree_map(lambda x: given[id(x)] if id(x) in given else outside(x, self.outer, seen), results)
        self.pairs.clear()
        return found

    def note(self, tensor: Tensor, node: Node) -> None:
        """Remember a tensor that was outside of the graph until the operator of `node` changed it in place."""
        name = node.name() if node.plan is None else f"{node.plan.op.name}_"
        self.changed.append((weakref.ref(tensor), name))

    def check_captured(self, func: Callable[..., Any]) -> None:
        """Raise RuntimeError if a tensor that `func` did not make itself was changed to depend on the inputs."""
        changed = [
            (tensor, name) for tensor, name in ((ref(), name) for ref, name in self.changed) if tensor is not None
        ]
        if not changed:
            return
        captured = captured_by(func)
        for tensor, name in changed:
            if id(tensor) in captured:
                tensor._edge = None
                raise RuntimeError(
                    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                    f"operation ({name}) that would mutate a captured Tensor. This is not supported; please rewrite the "
                    "function being transformed to explicitly accept the mutated Tensor(s) as inputs."
                )


def captured_by(func: Callable[..., Any], depth: int = 5) -> set[int]:
    """The ids of tensors that a function gets at without being given them: captured, global, of its object or module."""
    found: set[int] = set()
    stack, seen = [(func, depth)], set()
    while stack:
        x, left = stack.pop()
        if id(x) in seen or left < 0:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            found.add(id(x))
        else:
            stack += [(y, left - 1) for y in parts_of(x)]
    return found


def parts_of(x: Any) -> list[Any]:
    """What may hold a tensor in a function, an object of the user's or a container."""
    if isinstance(x, (list, tuple, set)):
        return list(x)
    if isinstance(x, dict):
        return list(x.values())
    code = getattr(x, "__code__", None)
    if code is not None:
        cells = [c.cell_contents for c in x.__closure__ or () if c != EMPTY]
        names = [x.__globals__[n] for n in code.co_names if n in x.__globals__]
        return [*cells, *names, *(x.__defaults__ or ()), getattr(x, "__self__", None)]
    if isinstance(x, (type, str, int, float)) or type(x).__module__ in ("builtins", "numpy") or hasattr(x, "__path__"):
        return []
    return [*vars(x).values(), getattr(x, "__self__", None)] if hasattr(x, "__dict__") else []


EMPTY = CellType()


def how_to_run(tensors: list[Tensor], transform: Transform) -> tuple[bool, bool]:
    """(tensors, record): whether a backward from these runs on tensors, as levels need, and whether it is recorded."""
    seen: set[Any] = set()
    record = transform.outer and any(alive(x, seen) for x in tensors)
    return record or bool(modes.levels) or any(type(x._held) is BatchedArray for x in tensors), record
