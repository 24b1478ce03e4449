"""A run: gradients from roots to leaves, nodes by decreasing sequence number, each as soon as it is complete.

All state of a run is local to it, so runs nest, threads do not meet, and an exception leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from heapq import heappop, heappush, heappushpop
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.references import untraced
from rushlight.basics.state import modes, restore_scoped, scoped, set_mode, special
from rushlight.engine import anomaly
from rushlight.engine.accumulate import accumulate_array, accumulate_tensor, hooked, missed
from rushlight.engine.conform import (
    Holders,
    add_arrays,
    add_tensors,
    conform_array,
    conform_tensor,
    dense,
    tensor_functions,
)
from rushlight.engine.deep import DEEP, in_thread
from rushlight.engine.hooks import after_node, pre_hooks, tensor_hooks
from rushlight.engine.node import EVERY, Edge, Node, Port
from rushlight.engine.reach import Records, count_between, count_contributions, target_of
from rushlight.engine.rows import Rows
from rushlight.overrides.protocol import ALL, DisableTorchFunctionSubclass, here, users
from rushlight.tensor import LEAF, Tensor, wrap

ndarray = np.ndarray
NOTHING = nullcontext()


class Run:
    """One traversal.  targets: {(leaf, 0) or (node, output number): positions}; None means every leaf."""

    observes = False  # whether observers are told of every node: see `observed`
    looks = False  # whether one of them may want to do something with a gradient
    record = True  # whether a run on tensors (`create`) is recorded: not so where levels alone ask for tensors
    asks = ALL  # who is asked around it, where it asks no class: see `users`
    dry = False  # whether it only looks at gradients, and another run on the same graph follows
    depth = 0  # how many runs it is inside of
    outer: Run | None = None  # the innermost of them
    ends: Any = ()  # the nodes among the targets
    callbacks: list[Any] | None = None  # called at its end: see `queue_callback`

    def __init__(self, keep_graph: bool, create_graph: bool, targets: dict[Any, list[int]] | None, into_grad: bool):
        self.keep, self.create, self.targets, self.into_grad = keep_graph, create_graph, targets, into_grad
        self.captured: dict[Any, Any] = {}
        self.token = object()  # tells runs apart, also when one object takes another's address
        self.masks: dict[Node, int] | None = None  # of nodes on ways to targets: which of their edges lead to one

    def execute(self, roots: list[tuple[Any, Tensor]]) -> dict[Any, Any]:
        """Send the gradients `roots` = [(edge, gradient)] through the graph; the captured gradients of targets."""
        if special.observing and self.__class__ is Run:
            self.__class__ = observed_class()
        outer = modes.run
        if outer is not None and not self.depth:
            self.outer, self.depth = outer, outer.depth + 1
            if self.depth % DEEP == 0:  # too many runs inside each other for one stack
                in_thread(lambda: self.execute(roots))
                return self.captured
        records = self.records = self.survey(roots)
        # A root's gradient may be the caller's tensor: it is never written to, since the caller holds it too.
        for edge, g in roots:
            self.deposit(edge, (g if isinstance(edge, Tensor) else dense(g)) if self.create else begun(edge, g))
        ready: list[Any] = []
        for target in dict.fromkeys([edge.node for edge, _ in roots if not isinstance(edge, Tensor)]):
            if target in records and records[target][0] == 0:  # nothing else leads there
                heappush(ready, (-target.seq, target))
        before = scoped() if special.count else None
        modes.run, records_graphs = self, set_mode("grad", self.create and self.record)
        if self.create:
            self.asks = here.asks
        try:
            with DisableTorchFunctionSubclass() if self.create else NOTHING:
                for edge, _ in roots:
                    if isinstance(edge, Tensor) and edge in records and records[edge][0] == 0:
                        self.leaf(edge, records[edge])
                if self.masks is not None and len(roots) == 1:
                    self.alone(*roots[0])
                self.loop(ready)
                if self.callbacks is not None:
                    for callback in self.callbacks:  # which may queue more
                        users(callback)
        finally:
            modes.run = outer
            set_mode("grad", records_graphs)
            if special.count:
                restore_scoped(before)
        return self.captured

    def survey(self, roots: list[tuple[Any, Tensor]]) -> Records:
        """Find the nodes and leaves that this run sends gradients to; with targets, those on a way to one alone."""
        if self.targets is None:
            return count_contributions(roots)
        self.ends = {target for target, _ in self.targets if not isinstance(target, Tensor)}
        records, self.masks = count_between(roots, self.targets)
        return records

    def completed(self, leaf: Tensor) -> None:
        """The gradient of a leaf is what it was waited for: see `accumulate.LATER`."""

    def reached(self, places: Iterable[Any]) -> int:
        """How many of the nodes and leaves this run sends gradients to."""
        return sum(place in self.records for place in places)

    def loop(self, ready: list[Any]) -> None:
        """Run nodes until none is ready.  With one follower no queue is needed: a chain never touches the heap."""
        if not self.create and modes.anomaly is None and not self.observes:
            first = self.fast_loop(ready)
            if first is None:
                return
            heappush(ready, (-first.seq, first))
        deliver = self.deliver_tensor if self.create else self.deliver_array
        records, create, keep = self.records, self.create, self.keep
        masks, ends = self.masks, self.ends
        watched = modes.anomaly is not None or self.observes
        node: Any = None
        while node is not None or ready:
            if node is None:
                node = heappop(ready)[1]
            record = records[node]
            g, record[1] = record[1], None
            wanted = EVERY if masks is None else masks.get(node, 0)
            if watched or node.extra is not None or node in ends:
                grads = self.guarded(node, g, wanted)
            elif g is None and not node.runs_without_grad:
                grads = None
            else:
                grads = node.run_tensors(g, wanted) if create else node.run(g, wanted)
            g = None
            if not keep and (wanted or self.into_grad):  # else the way ends before it
                node.release()
            edges = node.edges if wanted else ()
            grads = [None] * len(edges) if grads is None else grads if grads.__class__ is list else list(grads)
            plan = node.plan
            if plan is not None and plan.order is not None and wanted:
                edges, grads = plan.order(edges), list(plan.order(grads))
                wanted = in_order(wanted, plan.order(range(len(edges))))
            # Popped, so that from here on only `deliver` holds a gradient: it may then be stolen or added to in place.
            grads.reverse()
            node = None
            for edge in edges:
                if edge is None or not wanted & 1:
                    grads.pop()
                    wanted >>= 1
                    continue
                wanted >>= 1
                done = deliver(edge, grads.pop())
                if done is not None:
                    if node is None:
                        node = done
                    else:
                        heappush(ready, (-done.seq, done))
            if ready and node is not None and -ready[0][0] > node.seq:
                node = heappushpop(ready, (-node.seq, node))[1]

    def fast_loop(self, ready: list[Any]) -> Node | None:
        """`loop` for arrays, with `deliver_array` written into it, up to a node that has hooks or is a target; that, or None."""
        records, keep, masks, ends = self.records, self.keep, self.masks, self.ends
        node: Any = None
        own: Any = None  # the record of `node`
        while node is not None or ready:
            if node is None:
                node = heappop(ready)[1]
                own = records[node]
            if node.extra is not None or (ends and node in ends):
                return node  # type: ignore[no-any-return]
            g, own[1] = own[1], None
            plan = node.plan
            if g is None and not node.runs_without_grad:
                grads = [None] * len(node.edges)
            else:
                wanted = EVERY if masks is None else masks[node]
                grads = node.run(g, wanted) if plan is None or wanted != EVERY else plan.full(node, g)
                g = None
                if grads.__class__ is not list:
                    grads = list(grads)
            if not keep:
                if plan is None:
                    node.release()
                else:
                    node.saved = None
                    if not plan.slim:
                        node.outs = node.aux = None
            edges, node = node.edges, None
            if plan is not None and plan.order is not None:
                edges, grads = plan.order(edges), list(plan.order(grads))
            grads.reverse()
            for edge in edges:
                g = grads.pop()
                if edge is None:
                    continue
                record = records.get(edge)
                if record is None:
                    if edge.__class__ is not Port or edge.node not in records:  # it leads to no target
                        continue
                    done = self.deliver_port(edge, g)
                    record = records.get(done)
                else:
                    if g is not None:
                        like = edge._array if record[2] else edge
                        if g.__class__ is not ndarray or g.shape != like.shape or g.dtype is not like.dtype:
                            g = conform_array(g, edge, like.shape, like.dtype, record[1] is None)
                        if record[1] is None:
                            record[1] = g
                        else:
                            total, record[1] = record[1], None
                            record[1] = add_arrays(total, g)
                            total = None
                        g = None
                    left = record[0] = record[0] - 1
                    if left:
                        continue
                    if record[2]:
                        self.leaf(edge, record)
                        continue
                    done = edge
                if done is not None:
                    if node is None:
                        node, own = done, record
                    else:
                        heappush(ready, (-done.seq, done))
            if ready and node is not None and -ready[0][0] > node.seq:
                node = heappushpop(ready, (-node.seq, node))[1]
                own = records[node]
        return None

    def guarded(self, node: Node, g: Any, mask: int) -> Sequence[Any] | None:
        """Run a node that has hooks, outputs to capture, or anomaly mode watching."""
        captures = not self.into_grad and node in self.ends
        if captures and mask:  # as in PyTorch: what is captured on a way that goes on is the gradient before any hook
            self.capture(node, g)
        g = tensor_hooks(self, node, g)
        if captures and not mask:
            self.capture(node, g)
            return None
        g = pre_hooks(self, node, g)
        empty = g is None or (node.count != 1 and all(x is None for x in g))
        if empty and not node.runs_without_grad:
            grads: Any = None
        else:
            grads = self.compute(node, g, mask)
        return after_node(self, node, grads, g)

    def compute(self, node: Node, g: Any, mask: int) -> Sequence[Any]:
        """What a guarded node computes."""
        if modes.anomaly is not None:
            return anomaly.watched(node, g, mask, self.create)
        return node.run_tensors(g, mask) if self.create else node.run(g, mask)

    def capture(self, node: Node, g: Array | Tensor | list[Any]) -> None:
        assert self.targets is not None
        for nr in range(node.count):
            if (node, nr) in self.targets:
                value = g if node.count == 1 else g[nr]
                if value is not None:
                    self.captured[node, nr] = value

    def deliver_array(self, edge: Any, g: Any) -> Node | None:
        """Hand `g` to an edge; the node that has become ready, if any."""
        record = self.records.get(edge)
        if record is None:
            return self.deliver_port(edge, g)
        if g is not None:
            like = edge._array if record[2] else edge
            if g.__class__ is not ndarray or g.shape != like.shape or g.dtype is not like.dtype:
                g = conform_array(g, edge, like.shape, like.dtype, record[1] is None)
            if record[1] is None:
                record[1] = g
            else:
                total, record[1] = record[1], None
                record[1] = add_arrays(total, g)
                total = None
            g = None
        left = record[0] = record[0] - 1
        if left:
            return None
        if record[2]:
            self.leaf(edge, record)
            return None
        done: Node = edge
        return done

    def deliver_tensor(self, edge: Any, g: Tensor) -> Node | None:
        """As `deliver_array`, for tensors."""
        record = self.records.get(edge)
        if record is None:
            return self.deliver_port(edge, g)
        leaf = record[2]
        if g is not None:
            like = edge._array if leaf else edge
            g = conform_tensor(g, edge, like.shape, like.dtype)
            record[1] = g if record[1] is None else add_tensors(record[1], g)
            g = None  # type: ignore[assignment]  # held by the record alone: see `accumulate.add`
        record[0] -= 1
        if record[0] == 0:
            if not leaf:
                done: Node = edge
                return done
            self.leaf(edge, record)
        return None

    def deliver_port(self, port: Port, g: Any) -> Node | None:
        """Hand `g` to one output of a node that has several."""
        node, nr = port.node, port.nr
        record = self.records[node]
        if g is not None:
            conform = conform_tensor if self.create else conform_array
            self.put(record[1], nr, conform(g, port, node.shape[nr], node.dtype[nr]))
        record[0] -= 1
        if record[0]:
            return None
        if g is None and node.extra is None and node not in self.ends and not node.runs_without_grad:
            record[1] = some(record[1])
        return node

    def put(self, slots: list[Any], nr: int, g: Any) -> None:
        if slots[nr] is None:
            slots[nr] = g
        elif self.create:
            slots[nr] = add_tensors(slots[nr], g)
        else:
            slots[nr] = add_arrays(slots[nr], g)

    def deposit(self, edge: Edge, g: Array | Tensor) -> None:
        """Hand a root's gradient to its edge, which counts no contribution."""
        target = target_of(edge)
        record = self.records.get(target)
        if record is None:  # it leads to no target
            return
        if not isinstance(edge, Tensor) and edge.node.count != 1:
            self.put(record[1], edge.nr, g)
        else:
            slot = [record[1]]
            self.put(slot, 0, g)
            record[1] = slot[0]

    def alone(self, edge: Edge, g: Tensor) -> None:
        """Run the hooks of the one tensor that the run begins with, where it leads to no target: it has its gradient."""
        if target_of(edge) in self.records:
            return
        if isinstance(edge, Tensor):
            if edge._hooks:
                hooked(edge, g)
            return
        slots: list[Any] = [None] * edge.node.count
        slots[edge.nr] = g if self.create else g._array
        tensor_hooks(self, edge.node, slots if edge.node.count != 1 else slots[0])

    def leaf(self, leaf: Tensor, record: list[Any]) -> None:
        """The gradient of a leaf is complete: accumulate or capture it."""
        g, record[1] = record[1], None
        if g is None:
            if leaf._hooks:
                missed(leaf)
            return
        tensors = self.create
        if g.__class__ is Rows:
            g, tensors = tensor_functions["sparse"](g), True
        if self.targets is not None and not self.into_grad:
            if leaf._hooks:
                g = hooked(leaf, g if tensors else wrap(g))
                g = g if tensors else g._array
            self.captured[leaf, 0] = g
            return
        if tensors:
            accumulate_tensor(leaf, g)
        else:
            accumulate_array(leaf, g)


def begun(edge: Edge, g: Tensor) -> Any:
    """A gradient that a run on arrays begins with: where a leaf is given a sparse one, its rows."""
    if not (Rows.sparse and g.is_sparse):
        return g._array
    rows = tensor_functions["rows"](g)
    return rows if isinstance(edge, Tensor) else np.asarray(rows)


def some(slots: list[Any]) -> list[Any] | None:
    """The gradients of a node's outputs, or None where none of them arrived: the node is not run then."""
    return None if all(g is None for g in slots) else slots


def queue_callback(callback: Callable[..., Any], outermost: bool = False) -> None:
    """Call `callback()` at the end of the backward run that is going on, or of the outermost that it is inside of.

    Raises RuntimeError where none is.
    """
    run = modes.run
    if run is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass: call queue_callback from a hook or the "
                           "backward of a custom function")  # fmt: skip
    while outermost and run.outer is not None:
        run = run.outer
    if run.callbacks is None:
        run.callbacks = []
    run.callbacks.append(callback)


def in_order(wanted: int, order: Iterable[int]) -> int:
    """The mask of wanted edges in another order of the inputs."""
    return sum((wanted >> i & 1) << k for k, i in enumerate(order))


def observed_class() -> type[Any]:
    """The class of runs that tell observers; loaded when somebody observes."""
    from rushlight.engine.observed import ObservedRun

    return ObservedRun


@untraced
def calibrate() -> None:
    """Find the reference counts that mean "held by the run alone", by trying (see `conform.Holders`)."""
    run, leaf = Run(False, False, None, True), wrap(np.zeros(1))
    leaf._edge = LEAF
    run.records = {leaf: []}

    def stolen() -> bool:
        leaf._grad, g = None, np.zeros(1)
        at, cell = id(g), [g]
        del g
        run.records[leaf] = [1, None, True]
        run.deliver_array(leaf, cell.pop())
        return id(leaf._grad._array) == at

    def added_in_place() -> bool:
        run.records[leaf] = [3, np.zeros(1), True]
        at = id(run.records[leaf][1])
        run.deliver_array(leaf, np.zeros(1))
        return id(run.records[leaf][1]) == at

    class Probe(Node):
        """Counts the holders of the gradient that it is given."""

        def run(self, g: Array, wanted: int) -> list[Any]:
            self.counts(g)
            return []

        def counts(self, g: Array) -> None:
            Holders.node = getrefcount(g)

    probe = Probe()
    probe.edges, probe.extra, probe.seq = (), None, 0
    run.records = {probe: [0, np.zeros(1), False]}
    run.fast_loop([(0, probe)])
    run.records = {leaf: []}
    while not stolen() and Holders.leaf < 16:
        Holders.leaf += 1
    while not added_in_place() and Holders.buffer < 16:
        Holders.buffer += 1


calibrate()
