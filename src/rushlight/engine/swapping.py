"""Two tensors that exchange everything but their identity."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from rushlight.engine.node import Node
from rushlight.tensor import Tensor

__all__ = ["swap_tensors"]

_SLOTS = ("_array", "_edge", "_storage", "_view")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: whoever holds one has what the other was, with its class, memory, gradient, hooks and attributes.

    Raises RuntimeError for tensors that are referred to weakly, as parameters in an optimizer's dictionary are, or that a
    graph leads to: these would find the other one.

    >>> import rushlight as torch
    >>> a, b = torch.zeros(2), torch.nn.Parameter(torch.ones(3))
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    Parameter containing:
    tensor([1., 1., 1.], requires_grad=True)
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: expected a Tensor for argument {name!r}, got {type(t).__name__}")
        if weakref.getweakrefs(t):
            raise RuntimeError(
                f"Cannot swap {name} because it has weakref associated with it: let go of what refers to it weakly"
            )
        if _in_graph(t):
            raise RuntimeError(
                f"Cannot swap {name}: a graph leads to it, whose gradients would come to the other one; let go of what was "
                "computed with it, or call backward first"
            )
    if t1 is t2:
        return
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    first, second = _parts(t1), _parts(t2)
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for t, parts in ((t1, second), (t2, first)):
        for name, value in parts.items():
            setattr(t, name, value)


def _parts(t: Tensor) -> dict[str, Any]:
    """What a tensor has beside its dictionary."""
    return {name: getattr(t, name) for name in _SLOTS}


def _in_graph(t: Tensor) -> bool:
    """Whether a node leads to a tensor, which is then a leaf."""
    if not (t.requires_grad and t.is_leaf):
        return False
    for holder in gc.get_referrers(t):
        if isinstance(holder, Node) or (
            isinstance(holder, (tuple, list)) and any(isinstance(node, Node) for node in gc.get_referrers(holder))
        ):
            return True
    return False
