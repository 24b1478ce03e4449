"""Programs whose calls pass all their arguments by name."""

from __future__ import annotations

from typing import Any

from rushlight.absent import walls
from rushlight.fx.interpreter import Transformer
from rushlight.fx.node import Node, map_aggregate
from rushlight.fx.proxy import Proxy

__all__ = ["NormalizeArgs"]


class NormalizeArgs(Transformer):
    """`transform()` gives a module whose calls pass their arguments by name, with those that are as by default.

    normalize_to_only_use_kwargs: whether those that come by position stay there.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.flatten(x, 1))
    >>> [dict(node.kwargs) for node in NormalizeArgs(traced).transform().graph.find_nodes(op="call_function", target=torch.flatten)]
    [{'input': x, 'start_dim': 1, 'end_dim': -1}]
    """

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True):
        super().__init__(module)
        self.by_name = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """The step of the new program for one of the old."""
        way = n.normalized_arguments(self.module, normalize_to_only_use_kwargs=self.by_name)
        if way is None:
            return super().run_node(n)
        args, kwargs = self.map_nodes_to_values(way.args, n), self.map_nodes_to_values(way.kwargs, n)
        made = self.tracer.create_proxy(n.op, n.target, args, kwargs, n.name)
        return map_aggregate(made, lambda x: Proxy(x.node, self.tracer))


__getattr__ = walls.lacking(__name__)
