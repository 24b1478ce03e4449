"""Runs that tell observers of the roots, of every node and of every leaf."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns as clock
from typing import Any

from rushlight.basics.arrays import Array
from rushlight.basics.events import EVALUATE, EVALUATE_LEAF, LEAF, NODE, ROOT, observed, observers, unseen
from rushlight.basics.state import modes
from rushlight.engine.node import Edge, Node
from rushlight.engine.run import Run
from rushlight.tensor import Tensor


class ObservedRun(Run):
    """A run that somebody observes."""

    observes = True

    @property
    def looks(self) -> bool:  # type: ignore[override]
        return not unseen(observers())

    def deposit(self, edge: Edge, g: Array | Tensor) -> None:
        observed(ROOT, edge, (g,), (), super().deposit, edge, g)

    def guarded(self, node: Node, g: Array | list[Array | None], mask: int) -> Sequence[Any] | None:
        plain = node.extra is None and self.targets is None and modes.anomaly is None and node.count == 1
        if not plain or g is None:
            return observed(EVALUATE, node, (), (), super().guarded, node, g, mask)
        watchers = observers()
        if len(watchers) != 1 or not watchers[0].passive:
            return observed(EVALUATE, node, (), (), super().guarded, node, g, mask)
        grads, note = None, watchers[0].note
        start = clock()
        try:
            grads = node.run_tensors(g, mask) if self.create else node.run(g, mask)
            return grads
        finally:  # without hooks the node is all there is to evaluate
            stop = clock()
            note(NODE, node, (g,), (), start, stop, grads)
            note(EVALUATE, node, (), (), start, stop, None)

    def compute(self, node: Node, g: Array | list[Array | None], mask: int) -> Sequence[Any]:
        return observed(NODE, node, g if isinstance(g, list) else (g,), (), super().compute, node, g, mask)

    def leaf(self, leaf: Tensor, record: list[Any]) -> None:
        captured = self.targets is not None and not self.into_grad
        observed(EVALUATE_LEAF, leaf, (), (), super().leaf if captured else self.accumulated, leaf, record)

    def accumulated(self, leaf: Tensor, record: list[Any]) -> None:
        """What `leaf` does, told as the leaf's own part."""
        # The gradient is not told of: who held it would keep the leaf from taking its memory over.
        observed(LEAF, leaf, (leaf,), (), super().leaf, leaf, record)
