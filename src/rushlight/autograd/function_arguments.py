"""The arguments of a call of a custom function: what each is to the graph, and where those by keyword belong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.basics.signatures import signature_of
from rushlight.basics.state import modes
from rushlight.engine.node import edge_of
from rushlight.tensor import Tensor


def places(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[bool, ...], tuple[bool, ...]]:
    """Of each argument of forward the edge, where a graph is recorded, whether it requires grad, and whether it is a tensor."""
    edges, needed, tensors, grad = [], [], [], modes.grad
    for x in args:
        is_tensor = isinstance(x, Tensor)
        tensors.append(is_tensor)
        edges.append(edge_of(x) if grad and is_tensor else None)
        needed.append(is_tensor and x.requires_grad)
    return tuple(edges), tuple(needed), tuple(tensors)


def positional(fn: Callable[..., Any]) -> int:
    """How many arguments a function takes by position, 0 where that cannot be seen."""
    return int(fn.__code__.co_argcount) if hasattr(fn, "__code__") else 0


def with_defaults(cls: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of forward by position, its defaults included.

    Raises NotImplementedError for one that can be given by keyword only: setup_context would not be told of it.
    """
    bound = signature_of(cls.forward).bind(*args, **kwargs)
    if bound.kwargs:
        refuse_keywords(cls, bound.kwargs, "where setup_context is overridden")
    bound.apply_defaults()
    return bound.args


def by_position(
    cls: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a forward that takes ctx, those by position first: tensors have gradients there, whichever way they came.

    Raises NotImplementedError for a tensor that requires grad and can be given by keyword only.
    """
    bound = signature_of(cls.forward).bind(None, *args, **kwargs)
    lost = {k: v for k, v in bound.kwargs.items() if isinstance(v, Tensor) and v.requires_grad}
    if lost and modes.grad:
        refuse_keywords(cls, lost, "of tensors that require grad")
    return bound.args[1:], bound.kwargs


def refuse_keywords(cls: type[Any], kwargs: dict[str, Any], where: str) -> NoReturn:
    """Raise NotImplementedError for arguments that are given by keyword where they would get lost."""
    raise NotImplementedError(
        f"{cls.__name__}.apply(): kwarg-only Tensor args, and other arguments by keyword alone, are not possible {where}: got "
        f"{', '.join(kwargs)}. Give them by position"
    )
