"""A pass: a change of a graph, with what holds before and after."""

from __future__ import annotations

import abc
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether it changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass, with checks before and after: define `call`, and `requires` and `ensures` where there is something to check."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass itself."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  (may be left as it is)
        """Called before: raises where the pass cannot run."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Called after: raises where the pass did not do what it should."""
