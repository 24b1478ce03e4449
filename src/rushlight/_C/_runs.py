"""What a hook may ask of the backward run that it is called in."""

from __future__ import annotations

import itertools
from typing import Any

from rushlight.basics.state import modes
from rushlight.engine.node import AccumulateGrad, Node, accumulator
from rushlight.tensor import Tensor

_numbers = itertools.count()


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
