"""A run: gradients from roots to leaves, nodes by decreasing sequence number, each as soon as it is complete.

All state of a run is local to it, so runs nest, threads do not meet, and an exception leaves nothing behind.
"""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.engine import anomaly
from rushlight.engine.accumulate import accumulate_array, accumulate_tensor, hooked
from rushlight.engine.conform import Holders, add_arrays, conform_array, conform_tensor, tensor_functions
from rushlight.engine.hooks import after_node, before_node
from rushlight.engine.node import EVERY, Node, Port
from rushlight.state import Setting, modes, special
from rushlight.tensor import LEAF, Tensor, wrap

ndarray = np.ndarray
# A record of what a node or leaf waits for: [contributions outstanding, gradient so far (a list for several outputs),
# whether it is a leaf].
Records = dict[Any, list[Any]]


def count_contributions(roots: Any) -> Records:
    """For every node and leaf that gradients can reach from `roots`, how many contributions will arrive."""
    records: Records = {}
    stack: list[Any] = []
    for edge in roots:
        target = edge if isinstance(edge, Tensor) else edge.node
        if target not in records:
            records[target] = _record(target, 0)
            if target is not edge or not isinstance(edge, Tensor):
                stack.append(target)
    while stack:
        for edge in stack.pop().edges:
            if edge is None:
                continue
            record = records.get(edge)
            if record is not None:
                record[0] += 1
            elif edge.__class__ is Port:
                node = edge.node
                record = records.get(node)
                if record is None:
                    records[node] = _record(node, 1)
                    stack.append(node)
                else:
                    record[0] += 1
            elif isinstance(edge, Tensor):
                records[edge] = [1, None, True]
            else:
                records[edge] = [1, None, False]
                stack.append(edge)
    return records


def _record(target: Any, outstanding: int) -> list[Any]:
    leaf = isinstance(target, Tensor)
    return [outstanding, [None] * target.count if not leaf and target.count != 1 else None, leaf]


class Run:
    """One traversal.  targets: {(leaf, 0) or (node, output number): positions}; None means every leaf."""

    observes = False  # whether observers are told of every node: see `observed`
    record = True  # whether a run on tensors (`create`) is recorded: not so where levels alone ask for tensors
    dry = False  # whether it only looks at gradients, and another run on the same graph follows

    def __init__(self, keep_graph: bool, create_graph: bool, targets: dict[Any, list[int]] | None, into_grad: bool):
        self.keep, self.create, self.targets, self.into_grad = keep_graph, create_graph, targets, into_grad
        self.captured: dict[Any, Any] = {}
        self.token = object()  # tells runs apart, also when one object takes another's address
        self.masks: dict[Node, int] | None = None

    def execute(self, roots: list[tuple[Any, Tensor]]) -> dict[Any, Any]:
        """Send the gradients `roots` = [(edge, gradient)] through the graph; the captured gradients of targets."""
        if special.observing and self.__class__ is Run:
            self.__class__ = observed_class()
        records = self.records = count_contributions([edge for edge, _ in roots])
        if self.targets is not None:
            self.masks = self.needed()
        ready: list[Any] = []
        # A root's gradient may be the caller's tensor: it is never written to, since the caller holds it too.
        for edge, g in roots:
            self.deposit(edge, g if self.create else g._array)
        for target in dict.fromkeys([edge.node for edge, _ in roots if not isinstance(edge, Tensor)]):
            if records[target][0] == 0:  # nothing else leads there
                heappush(ready, (-target.seq, target))
        former = modes.run
        modes.run = self
        try:
            with Setting("grad", self.create and self.record):
                for edge, _ in roots:
                    if isinstance(edge, Tensor) and records[edge][0] == 0:
                        self.leaf(edge, records[edge])
                self.loop(ready)
        finally:
            modes.run = former
        return self.captured

    def reached(self, edges: Any) -> int:
        """How many of the (node, output number, ...) `edges` this run sends gradients to."""
        count = 0
        for node, *_ in edges:
            variable = getattr(node, "variable", None)
            target = node if variable is None else variable
            if target in self.records and self.wants(target):
                count += 1
        return count

    def wants(self, target: Any) -> bool:
        """Whether a node or leaf is on the way to what this run computes."""
        if self.targets is None:
            return True
        if isinstance(target, Tensor):
            return (target, 0) in self.targets
        assert self.masks is not None
        return target in self.masks or any((target, nr) in self.targets for nr in range(target.count))

    def needed(self) -> dict[Node, int]:
        """For each node on a way to a target, which of its edges lead to one."""
        assert self.targets is not None
        masks: dict[Node, int] = {}
        nodes = sorted((n for n in self.records if isinstance(n, Node)), key=lambda n: n.seq)
        for node in nodes:
            mask = 0
            for i, edge in enumerate(node.edges):
                if edge is None:
                    continue
                if isinstance(edge, Tensor):
                    wanted = (edge, 0) in self.targets
                else:
                    wanted = edge.node in masks or (edge.node, edge.nr) in self.targets
                mask |= wanted << i
            if mask:
                masks[node] = mask
        return masks

    def loop(self, ready: list[Any]) -> None:
        """Run nodes until none is ready.  With one follower no queue is needed: a chain never touches the heap."""
        if not self.create and self.masks is None and modes.anomaly is None and not self.observes:
            first = self.fast_loop(ready)
            if first is None:
                return
            heappush(ready, (-first.seq, first))
        deliver = self.deliver_tensor if self.create else self.deliver_array
        records, create, keep = self.records, self.create, self.keep
        masks = self.masks
        watched = masks is not None or modes.anomaly is not None or self.observes
        node: Any = None
        while node is not None or ready:
            if node is None:
                node = heappop(ready)[1]
            record = records[node]
            g, record[1] = record[1], None
            if watched or node.extra is not None:
                grads = self.guarded(node, g, EVERY if masks is None else masks.get(node, 0))
            elif g is None and not node.runs_without_grad:
                grads = None
            else:
                grads = node.run_tensors(g, EVERY) if create else node.run(g, EVERY)
            g = None
            if not keep:
                node.release()
            edges = node.edges
            grads = [None] * len(edges) if grads is None else grads if grads.__class__ is list else list(grads)
            # Popped, so that from here on only `deliver` holds a gradient: it may then be stolen or added to in place.
            grads.reverse()
            node = None
            for edge in edges:
                if edge is None:
                    grads.pop()
                    continue
                done = deliver(edge, grads.pop())
                if done is not None:
                    if node is None:
                        node = done
                    else:
                        heappush(ready, (-done.seq, done))
            if ready and node is not None and -ready[0][0] > node.seq:
                node = heappushpop(ready, (-node.seq, node))[1]

    def fast_loop(self, ready: list[Any]) -> Any:
        """`loop` for arrays, with `deliver_array` written into it, up to a node that has hooks; that node, or None."""
        records, keep = self.records, self.keep
        node: Any = None
        own: Any = None  # the record of `node`
        while node is not None or ready:
            if node is None:
                node = heappop(ready)[1]
                own = records[node]
            if node.extra is not None:
                return node
            g, own[1] = own[1], None
            plan = None
            if g is None and not node.runs_without_grad:
                grads = [None] * len(node.edges)
            else:
                plan = node.plan
                grads = node.run(g, EVERY) if plan is None else plan.full(node, g)
                g = None
                if grads.__class__ is not list:
                    grads = list(grads)
            if not keep:
                if plan is not None and plan.slim:
                    node.saved = None
                else:
                    node.release()
            grads.reverse()
            edges, node = node.edges, None
            for edge in edges:
                g = grads.pop()
                if edge is None:
                    continue
                record = records.get(edge)
                if record is None:
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

    def guarded(self, node: Node, g: Any, mask: int) -> Any:
        """Run a node that has hooks, outputs to capture, or anomaly mode watching."""
        g = before_node(self, node, g)
        if self.targets is not None:
            self.capture(node, g)
            if mask == 0:
                return None
        empty = g is None or (node.count != 1 and all(x is None for x in g))
        if empty and not node.runs_without_grad:
            grads: Any = None
        else:
            grads = self.compute(node, g, mask)
        return after_node(self, node, grads, g)

    def compute(self, node: Node, g: Any, mask: int) -> Any:
        """What a guarded node computes."""
        if modes.anomaly is not None:
            return anomaly.watched(node, g, mask, self.create)
        return node.run_tensors(g, mask) if self.create else node.run(g, mask)

    def capture(self, node: Node, g: Any) -> None:
        assert self.targets is not None
        for nr in range(node.count):
            if (node, nr) in self.targets:
                value = g if node.count == 1 else g[nr]
                if value is not None:
                    self.captured[node, nr] = value

    def deliver_array(self, edge: Any, g: Any) -> Any:
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
        return edge

    def deliver_tensor(self, edge: Any, g: Any) -> Any:
        """As `deliver_array`, for tensors."""
        record = self.records.get(edge)
        if record is None:
            return self.deliver_port(edge, g)
        leaf = record[2]
        if g is not None:
            like = edge._array if leaf else edge
            g = conform_tensor(g, edge, like.shape, like.dtype)
            record[1] = g if record[1] is None else tensor_functions["add"](record[1], g)
        record[0] -= 1
        if record[0] == 0:
            if not leaf:
                return edge
            self.leaf(edge, record)
        return None

    def deliver_port(self, port: Port, g: Any) -> Any:
        """Hand `g` to one output of a node that has several."""
        node, nr = port.node, port.nr
        record = self.records[node]
        if g is not None:
            conform = conform_tensor if self.create else conform_array
            self.put(record[1], nr, conform(g, port, node.shape[nr], node.dtype[nr]))
        record[0] -= 1
        return node if record[0] == 0 else None

    def put(self, slots: list[Any], nr: int, g: Any) -> None:
        if slots[nr] is None:
            slots[nr] = g
        elif self.create:
            slots[nr] = tensor_functions["add"](slots[nr], g)
        else:
            slots[nr] = add_arrays(slots[nr], g)

    def deposit(self, edge: Any, g: Any) -> None:
        """Hand a root's gradient to its edge, which counts no contribution."""
        target = edge if isinstance(edge, Tensor) else edge.node
        record = self.records[target]
        if not isinstance(edge, Tensor) and target.count != 1:
            self.put(record[1], edge.nr, g)
        else:
            slot = [record[1]]
            self.put(slot, 0, g)
            record[1] = slot[0]

    def leaf(self, leaf: Tensor, record: list[Any]) -> None:
        """The gradient of a leaf is complete: accumulate or capture it."""
        g, record[1] = record[1], None
        if g is None:
            return
        if self.targets is not None:
            if (leaf, 0) not in self.targets:
                return
            if not self.into_grad:
                if leaf._hooks:
                    g = hooked(leaf, g if self.create else wrap(g))
                    g = g if self.create else g._array
                self.captured[leaf, 0] = g
                return
        if self.create:
            accumulate_tensor(leaf, g)
        else:
            accumulate_array(leaf, g)


def observed_class() -> Any:
    """The class of runs that tell observers; loaded when somebody observes."""
    from rushlight.engine.observed import ObservedRun

    return ObservedRun


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

        def run(self, g: Any, wanted: int) -> Any:
            Holders.node = getrefcount(g)
            return []

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
