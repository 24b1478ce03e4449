"""Runs that tell observers of the roots, of every node and of every leaf."""

from __future__ import annotations

from typing import Any

from rushlight.engine.node import Node
from rushlight.engine.run import Run
from rushlight.events import EVALUATE, EVALUATE_LEAF, LEAF, NODE, ROOT, observed
from rushlight.tensor import Tensor


class ObservedRun(Run):
    """A run that somebody observes."""

    observes = True

    def deposit(self, edge: Any, g: Any) -> None:
        observed(ROOT, edge, (g,), (), super().deposit, edge, g)

    def guarded(self, node: Node, g: Any, mask: int) -> Any:
        return observed(EVALUATE, node, (), (), super().guarded, node, g, mask)

    def compute(self, node: Node, g: Any, mask: int) -> Any:
        return observed(NODE, node, g if isinstance(g, list) else (g,), (), super().compute, node, g, mask)

    def leaf(self, leaf: Tensor, record: list[Any]) -> None:
        observed(EVALUATE_LEAF, leaf, (), (), self.accumulated, leaf, record)

    def accumulated(self, leaf: Tensor, record: list[Any]) -> None:
        """What `leaf` does, told as the leaf's own part."""
        observed(LEAF, leaf, (record[1],), (), super().leaf, leaf, record)
