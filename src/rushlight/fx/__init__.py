"""``torch.fx``: programs traced into graphs that can be looked at, changed, run and written as Python again.

Running a module once on proxies (`symbolic_trace`) gives a `Graph` of steps; a `GraphModule` runs it; an `Interpreter`
goes through it step by step.  What a program does must not depend on the values in its tensors.
"""

from rushlight.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from rushlight.fx.graph import CodeGen, Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, has_side_effect, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.subgraph_rewriter import Match, replace_pattern

__all__ = ["PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Match", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
           "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap"]  # fmt: skip
