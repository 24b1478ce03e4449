"""What a hook may ask of the backward run that it is called in."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from rushlight.autograd.function import FunctionNode
from rushlight.basics.state import modes
from rushlight.engine.accumulate import hooked
from rushlight.engine.node import AccumulateGrad, Node, accumulator
from rushlight.engine.run import Run
from rushlight.tensor import Tensor

_numbers = itertools.count()
# What calls a user's code in a run, and the name under which it has the node, or its leaf.
_CALLERS = {FunctionNode.call_backward.__code__: "self", Run.guarded.__code__: "node", hooked.__code__: "leaf"}


def _run(name: str) -> Any:
    if modes.run is None:
        raise RuntimeError(f"{name} should only be called during the backward pass")
    return modes.run


def _current_graph_task_id() -> int:
    """The number of the run that this thread is in, -1 outside of any."""
    run = modes.run
    if run is None:
        return -1
    if "number" not in run.__dict__:
        run.number = next(_numbers)
    return int(run.number)


def _current_autograd_node() -> Node | None:
    """The node whose backward or hook calls this; None outside of a run.

    A run does not note which of its nodes runs: it is found among the calls that have not ended.
    """
    frame = sys._getframe(1) if modes.run is not None else None
    while frame is not None:
        name = _CALLERS.get(frame.f_code)
        if name is not None:
            found = frame.f_locals[name]
            return accumulator(found) if isinstance(found, Tensor) else found
        frame = frame.f_back
    return None


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the run sends a gradient to a node.  Raises RuntimeError outside of a run, and for what is no node."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    run = _run("_will_engine_execute_node")
    return (node.variable if isinstance(node, AccumulateGrad) else node) in run.records


def _current_graph_task_execution_order() -> list[Node]:
    """The nodes of the run in the order in which they run.  Raises RuntimeError outside of a run."""
    places = list(_run("_current_graph_task_execution_order").records)
    nodes = sorted((place for place in places if isinstance(place, Node)), key=lambda node: -node.seq)
    return [*nodes, *(accumulator(place) for place in places if isinstance(place, Tensor))]
