"""``torch._dynamo``: what compiles programs in PyTorch.  Nothing is compiled here: its decorators return their argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import absent
from rushlight._dynamo import _trace_wrapped_higher_order_op, backends, config, eval_frame, exc, utils
from rushlight._dynamo.backends.registry import list_backends, lookup_backend, register_backend
from rushlight._dynamo.eval_frame import OptimizedModule, compiled, is_dynamo_supported

__all__ = ["OptimizedModule", "_trace_wrapped_higher_order_op", "allow_in_graph", "assume_constant_result",
           "backends", "config", "disable", "disallow_in_graph", "eval_frame", "exc", "forbid_in_graph",
           "graph_break", "is_compiling", "is_dynamo_supported", "list_backends", "lookup_backend", "mark_dynamic",
           "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "register_backend", "reset", "run",
           "utils"]  # fmt: skip
absent.names(globals(), "nothing is captured here: programs run as they are", "", "explain export")


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """`fn` as it is, or a decorator that returns its function."""
    return (lambda function: function) if fn is None else fn


def _same(fn: Callable[..., Any]) -> object:
    """`fn` as it is."""
    return fn


allow_in_graph = disallow_in_graph = forbid_in_graph = assume_constant_result = run = _same


def optimize(backend: object = "inductor", **options: object) -> Callable[..., Any]:
    """A decorator that does what `torch.compile` does."""
    return lambda model: compiled(model, backend)


def graph_break(msg: str = "") -> None:
    """Nothing is compiled, so nothing breaks."""


def reset() -> None:
    """Forget what was counted of compiling: nothing is compiled."""
    utils.counters.clear()


def is_compiling() -> bool:
    """Whether a program is being compiled: no."""
    return False


def mark_dynamic(t: object, index: object, **options: object) -> None:
    """Of no effect: sizes are what they are when a program runs."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: object, index: object = None) -> None:
    """Of no effect: sizes are what they are when a program runs."""


def mark_static_address(t: object, guard: bool = False) -> None:
    """Of no effect: nothing is compiled for where a tensor lies."""
