"""Annotations put on values while a program is traced."""

from __future__ import annotations

from typing import Any

from rushlight.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: object, type: object) -> Any:
    """`val`; while tracing the step that it stands for gets this annotation.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: annotate(x.size(0), int))
    >>> [node.type for node in traced.graph.nodes]
    [None, <class 'int'>, None]
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(f"annotate: {val.node} has the annotation {val.node.type} already")
        val.node.type = type
    return val
