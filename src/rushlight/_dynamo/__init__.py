"""``torch._dynamo``: what compiles programs in PyTorch.  Nothing is compiled here: its decorators return their argument."""

from __future__ import annotations

from typing import Any

from rushlight._dynamo import _trace_wrapped_higher_order_op, config, eval_frame, utils
from rushlight._dynamo.eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "_trace_wrapped_higher_order_op", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "eval_frame",
           "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported", "mark_dynamic", "mark_static", "maybe_mark_dynamic", "optimize",
           "reset", "run", "utils"]  # fmt: skip


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """`fn` as it is, or a decorator that returns its function."""
    return (lambda function: function) if fn is None else fn


def _same(fn: Any) -> Any:
    """`fn` as it is."""
    return fn


allow_in_graph = disallow_in_graph = forbid_in_graph = assume_constant_result = run = _same


def optimize(*args: object, **kwargs: object) -> Any:
    """A decorator that returns its function."""
    return _same


def graph_break(msg: str = "") -> None:
    """Nothing is compiled, so nothing breaks."""


def reset() -> None:
    """There is nothing compiled to be forgotten."""


def is_compiling() -> bool:
    """Whether a program is being compiled: no."""
    return False


def is_dynamo_supported() -> bool:
    """Whether programs can be compiled: no."""
    return False


def mark_dynamic(t: Any, index: Any, **options: object) -> None:
    """Of no effect: sizes are what they are when a program runs."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_dynamic
