"""In-place changes: which are refused, and how the history of a changed tensor or of a view's base is rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex, real_of
from rushlight.basics.errors import explained
from rushlight.basics.state import Setting, modes
from rushlight.engine import anomaly
from rushlight.engine.conform import Grads, Holders
from rushlight.engine.node import Edge, Node, Port, edge_of, next_seq
from rushlight.engine.saved import OfView, freed
from rushlight.engine.views import Step, chain_of, follow_retained, lags, refresh, refusal, repeats, replay
from rushlight.levels.batch import batched_like, batches_of
from rushlight.signs import to_hold, turned
from rushlight.storage import bump, dependents, refuse_inference, root_of, settle, storage_of
from rushlight.tensor import Tensor, bare, steady_node, wrap


def check(tensor: Tensor, requires_grad: bool) -> None:
    """Raise RuntimeError if `tensor` may not be changed in place now.

    requires_grad: whether the change would make its result require grad.
    """
    if tensor._inference:
        refuse_inference(tensor)
    if dependents:
        settle(tensor._held)
    keep_result(tensor)
    if not modes.grad:
        return
    needs, view = tensor.requires_grad, tensor._view
    if not needs and not requires_grad:
        return
    if view is not None:
        if view.kind:
            raise RuntimeError(refusal(tensor, "is being"))
        if repeats(view.base._held):
            raise RuntimeError(
                "a view of a tensor several of whose elements lie on one place in memory is being used in an in-place operation "
                f"that is recorded: shape {list(view.base.shape)}, strides {list(view.base.stride())}. What the others get of "
                "its gradient is not known: clone() that tensor before"
            )
        if needs and view.base.is_leaf:
            raise explained(
                RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation."),
                "leaf-in-place",
            )
    if needs and not lags(tensor) and (tensor.is_leaf or getattr(tensor._edge, "leaf_like", False)):
        raise explained(
            RuntimeError("a leaf Variable that requires grad is being used in an in-place operation."), "leaf-in-place"
        )


def keep_result(tensor: Tensor) -> None:
    """Have the node that made a tensor, which is about to change, keep what it needs of it, where PyTorch's keeps its input instead."""
    found = steady_node(tensor)
    if found is not None:
        found[0].keep_result(found[1])


def tell_of_operands(target: Tensor, flat: Sequence[Any]) -> None:
    """Have those who packed operands that lie on the memory of `target` know that it is about to change: `check` told of it before."""
    if getattr(target._held, "interpreted", False):
        return
    root = root_of(target._held)
    if any(isinstance(x, Tensor) and root_of(x._held) is root for x in flat[1:]):
        settle(root)


def origin(tensor: Tensor) -> Tensor:
    """Whose history a change of `tensor` in place goes on from: of a view that lags behind its base, that of the base."""
    info = tensor._view
    if info is None or info.kind or info.base._edge is None or not lags(tensor):
        return tensor
    base: Tensor = info.base
    return base


def written(tensor: Tensor, name: str) -> None:
    """Count the change of `tensor` by operator `name`."""
    bump(tensor)
    tensor._storage.writer = name if modes.anomaly is None else f"{name} at {anomaly.user_line()}"


def rebase(tensor: Tensor, edge: Node | Port, alone: bool = False) -> None:
    """Make `edge` the history of `tensor` after an in-place change; of a view, of its base.

    alone: whether nothing else that the change was computed from has a history.
    """
    info = tensor._view
    base = tensor if info is None else info.base
    if modes.transform is not None and base._edge is None:
        modes.transform.note(base, edge.node)
    if info is None:
        former, tensor._edge = tensor._edge, edge
        let_go(tensor, former, edge, alone)
        if tensor._retains:
            follow_retained(tensor, former)
        return
    former = base._edge
    base._edge = copied = CopySlices(base, chain_of(tensor), edge.node)
    let_go(base, former, copied, alone)
    if copied.keeps_outputs():
        copied.changed = tensor._weak()
    if base._retains:
        follow_retained(base, former)
    if modes.anomaly is not None:
        anomaly.note(copied)
    # The view's own edge follows when it is next asked for: its version lags behind the storage's.
    info.version = -1
    if tensor._retains:  # but what the change itself was computed from is no history of the view's
        refresh(tensor)


FAR, NEAR = 1000, 20  # nodes that are looked at, of a history that is known to begin somewhere, or is not


def let_go(base: Tensor, former: Edge, edge: Node | Port, alone: bool = False) -> None:
    """Have nodes before `edge` hold what was saved of `base` by its memory alone, not as the tensor whose history they are now.

    As in ``v.add_(v @ v)``: the product keeps v, whose history goes on from the product, and nothing of it would ever be freed.
    (What they saved was changed, so that their gradients are refused as before.)  Only nodes that are newer than the tensor can
    have it; those of the former history had let go before, and the nearest are looked at first.
    """
    before = former.node if isinstance(former, Node | Port) else None
    storage = storage_of(base)
    since = storage.since = getattr(storage, "since", -1 if before is None else before.seq)
    if alone:  # all that is before `edge` let go before
        return
    nodes, most = [edge.node], NEAR if since < 0 else FAR
    seen = {id(before)}
    for node in nodes:
        saved = getattr(node, "saved", None)
        if saved:
            relieve(node, saved, base, former)
        ups = node.edges if node.__class__ is not CopySlices else (*node.edges, node.fn)
        for up in ups if len(nodes) < most else ():
            if up.__class__ is Port:
                up = up.node
            if isinstance(up, Node) and up.seq > since and id(up) not in seen:
                seen.add(id(up))
                nodes.append(up)


def relieve(node: Any, saved: Sequence[Any], base: Tensor, former: Edge) -> None:
    """Let a node hold memory where it saved a tensor, or views of it."""
    for x in saved:
        if shows(x, base):
            node.saved = tuple([memory_of(x, base, former) if shows(x, base) else x for x in saved])
            return


def shows(saved: object, base: Tensor) -> bool:
    """Whether what a node saved is a tensor, or a view of it."""
    return saved is base or (isinstance(saved, Tensor) and saved._view is not None and saved._view.base is base)


def memory_of(saved: Tensor, base: Tensor, former: Edge) -> Tensor:
    """A tensor on the memory of a saved one, with the history that it had."""
    t = bare()
    t._array, t._storage, t._view = saved._held, storage_of(saved), None
    t._edge = former if saved is base else saved._edge
    return t


class CopySlices(Node):
    """The history of a base, one of whose views was changed in place by the operation `fn`.

    The gradient of the changed region goes through `fn`; the rest passes unchanged.
    """

    __slots__ = ("chain", "changed", "fn", "released", "strides", "turned")

    def __init__(self, base: Tensor, chain: tuple[Any, ...], fn: Node):
        self.chain, self.fn, self.extra, self.seq = chain, fn, None, next_seq()
        self.changed: Any = None  # weakly, the view that was changed
        self.released = False  # a second backward is refused also where `fn` saved nothing
        self.shape, self.dtype = base._held.shape, base._held.dtype
        self.strides = None if base._held.flags.c_contiguous else base._held.strides
        self.turned = any(step.__class__ is Step and step.op.turns for step in chain)
        rest = fn.edges[1:]
        self.edges, fn.edges = (edge_of(base), *rest), (None, *rest)

    @property
    def steady_out(self) -> bool:  # type: ignore[override]
        """As of the operation."""
        return self.fn.steady_out

    def keep_result(self, result: Tensor) -> None:
        self.fn.keep_result(self.part(result))

    def watch_result(self, result: Tensor) -> None:
        self.fn.watch_result(self.part(result))

    def part(self, base: Tensor) -> Tensor:
        """The view that was changed, of its base."""
        t = wrap(replay(self.chain, base._held))
        t._storage = base._storage
        return t

    def name(self) -> str:
        """The name, with PyTorch's prefix."""
        return "torch::autograd::CopySlices"

    def input_places(self) -> tuple[int, ...] | None:
        """Which edges are shown: that of the base, and those that the operation shows."""
        places = self.fn.input_places()
        return None if places is None else (0, *(place for place in places if place))

    def buffer(self, g: Array) -> Array:
        """A copy of the base's gradient, laid out as the base was, so that the view's operators give views."""
        if self.strides is None:
            return np.array(g, order="C")
        if 0 in self.strides or min(self.strides, default=1) < 0:
            order = sorted(range(g.ndim), key=lambda i: -abs(self.strides[i]))  # type: ignore[index]
            out = np.empty([g.shape[i] for i in order], g.dtype).transpose(np.argsort(order))
        else:
            reach = sum((n - 1) * s for n, s in zip(g.shape, self.strides, strict=True)) if g.size else 0
            count = reach // g.itemsize + 1
            memory = (
                np.empty(count, g.dtype) if count == g.size else np.zeros(count, g.dtype)
            )  # a view may show its gaps
            out = np.ndarray(g.shape, g.dtype, memory, 0, self.strides)
        out[...] = g
        return out

    def batch(self, g: Tensor) -> Tensor:
        """As `buffer`, of a tensor that holds one gradient for each sample of a batch."""
        strides = self.strides or tuple(range(len(self.shape), 0, -1))
        order = sorted(range(len(strides)), key=lambda i: -abs(strides[i]))
        return g.permute(order).clone().contiguous().permute([order.index(i) for i in range(len(order))])

    def mine(self, g: Array) -> bool:
        """Whether the gradient that `run` got is laid out as the base was, and held by the run alone."""
        laid_out = g.flags.c_contiguous if self.strides is None else g.strides == self.strides
        return bool(laid_out and g.base is None and g.flags.writeable and getrefcount(g) <= Holders.node)

    def run(self, g: Array, wanted: int) -> Sequence[Any]:
        if self.released:
            freed(self)
        whole = g if self.mine(g) else self.buffer(g)
        if self.turned:
            return self.run_turned(whole, wanted)
        part = replay(self.chain, whole)
        rest = self.rest(wanted)
        grads = list(self.fn.run(self.of_output(part.copy()), wanted | 1 if rest else wanted & ~1))
        if not rest:
            return [None, *grads[1:]]
        if grads[0] is None:
            part[...] = 0
        else:
            part[...] = grads[0] if is_complex(part.dtype) else real_of(grads[0])
        return [whole, *grads[1:]]

    def rest(self, wanted: int) -> bool:
        """Whether the gradient of the rest of the base goes anywhere, and is asked for."""
        return bool(wanted & 1) and self.edges[0] is not None

    def run_turned(self, whole: Array, wanted: int) -> Sequence[Any]:
        """As `run`, of a view through a conjugate or negative bit, which only a tensor sees through."""
        with Setting("grad", False), Setting("levels", ()), Setting("inference", False):
            part = replay(self.chain, wrap(whole))
        grads = list(self.fn.run(self.of_output(turned(part._held, part._bits)), wanted | 1))
        if not self.rest(wanted):
            return [None, *grads[1:]]
        region = part._held.dtype.type(0) if grads[0] is None else grads[0]
        part._held[...] = to_hold(part, np.asarray(region if is_complex(part._held.dtype) else real_of(region)))
        return [whole, *grads[1:]]

    def run_tensors(self, g: Tensor, wanted: int) -> list[Any]:
        if self.released:
            freed(self)
        with Setting("grad", True):
            if getattr(g._held, "interpreted", False):
                whole = self.batch(g)
            elif g._dispatched:
                whole = g.clone()
            else:
                whole = wrap(self.buffer(np.zeros(g._held.shape, g._held.dtype)))
                whole.copy_(g)
            part = replay(self.chain, whole)
            with self.outputs_of_view(g._held):
                grads = list(self.fn.run_tensors(self.of_output(part.clone()), wanted | 1))
            if not self.rest(wanted):
                return [None, *grads[1:]]
            if grads[0] is None:
                part.zero_()
            else:
                if not batches_of(grads[0]) <= batches_of(
                    whole
                ):  # a gradient that all samples share, of which a part is none
                    whole = self.batch(batched_like(grads[0], whole))
                    part = replay(self.chain, whole)
                part.copy_(grads[0])
            return [whole, *grads[1:]]

    def keeps_outputs(self) -> bool:
        """Whether the operation saves its output, or may."""
        plan = getattr(self.fn, "plan", None)
        return hasattr(self.fn, "of_view") if plan is None else bool(plan.save_outs)

    @contextmanager
    def outputs_of_view(self, like: Array) -> Iterator[None]:
        """While `fn` runs on tensors, the outputs that it saved are the changed view, with its place in the graph."""
        fn: Any = self.fn
        outs: Any = getattr(fn, "outs", None)
        of_view = getattr(fn, "of_view", None)
        if outs is None and of_view is None:
            yield
            return
        edge = self.view_edge(like)
        if of_view is not None:
            of_view(edge)
        else:
            fn.outs = [None if kept is None else OfView(kept, edge) for kept in outs]
        try:
            yield
        finally:
            if of_view is not None:
                of_view(None)
            else:
                fn.outs = outs

    def view_edge(self, like: Array) -> Edge | None:
        """The edge of the changed view: its own, or where nobody has it any more, or it has another by now, one like it.

        That is the edge of the view's operators on a base whose history is this node.
        """
        view = self.changed and self.changed()
        info = None if view is None else view._view  # of the same shape: another would be a change of what was saved
        if info is not None and info.base._edge is self and not info.kind:
            Tensor._refresh(view)
            edge: Edge | None = view._edge
            return edge
        base = wrap(self.buffer(np.broadcast_to(like.dtype.type(0), like.shape)))
        base._edge = self
        with Setting("saved_hooks", ()):
            made: Edge | None = replay(self.chain, base)._edge
        return made

    def of_output(self, g: Array | Tensor) -> Grads:
        """The gradients of the outputs of `fn`: in-place operators have one."""
        return g if self.fn.count == 1 else [g] + [None] * (self.fn.count - 1)

    def release(self) -> None:
        self.fn.release()
        self.released = True
