"""Steps that do the same are done once: common subexpression elimination."""

from __future__ import annotations

import sys
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.utils import _pytree as pytree

__all__ = ["CSEPass", "get_CSE_banned_ops"]

DRAWS = ("bernoulli", "dropout", "multinomial", "native_dropout", "normal", "poisson", "rand", "rand_like", "randint",
         "randint_like", "randn", "randn_like", "randperm")  # fmt: skip
CHANGES = ("add_", "sub_", "mul_", "div_", "pow_", "lerp_", "relu_", "sigmoid_", "tanh_")


def get_CSE_banned_ops() -> set[Any]:
    """Operators of which two calls are never one: those that draw, and some that change their argument."""
    aten = sys.modules[__name__.partition(".")[0]].ops.aten
    return {getattr(aten, name) for name in (*DRAWS, *CHANGES)}


class CSEPass(PassBase):
    """Of steps that call the same function on the same arguments only the first is left; functions are taken to be pure.

    banned_ops: operators, such as ``torch.ops.aten.rand``, whose calls all stay; default: `get_CSE_banned_ops`.
    """

    def __init__(self, banned_ops: Any = None) -> None:
        super().__init__()
        self.banned_ops = get_CSE_banned_ops() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """A module with another graph, and whether steps are gone from it."""
        graph, modified = Graph(), False
        graph._codegen = graph_module.graph._codegen
        env: dict[Node, Node] = {}
        known: dict[object, Node] = {}
        for node in graph_module.graph.nodes:
            key = self._key(node, env)
            if key is not None and key in known:
                env[node], modified = known[key], True
                continue
            made = env[node] = graph.node_copy(node, lambda x: env[x])
            if key is not None:
                known[key] = made
        return PassResult(GraphModule(graph_module, graph), modified)

    def _key(self, node: Node, env: dict[Node, Node]) -> object:
        """What is equal for steps that do the same; None for one that stays."""
        if node.op in ("placeholder", "output", "get_attr"):
            return None
        changes = node.op == "call_method" and str(node.target).endswith("_") and not str(node.target).endswith("__")
        if changes or node.is_impure() or getattr(node.target, "overloadpacket", node.target) in self.banned_ops:
            return None
        leaves, spec = pytree.tree_flatten(map_arg((node.args, dict(node.kwargs)), lambda x: env[x]))
        key = (node.op, node.target, repr(spec), tuple((type(leaf), leaf) for leaf in leaves))
        try:
            hash(key)
        except TypeError:  # an argument that cannot be told from others
            return None
        return key
