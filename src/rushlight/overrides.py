"""``torch.overrides``: questions about ``__torch_function__``, which rushlight itself never calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.tensor import Tensor

__all__ = ["has_torch_function", "is_tensor_like", "is_tensor_method_or_property"]


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a tensor, or has ``__torch_function__``.

    >>> import rushlight as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments has ``__torch_function__``; tensors do not."""
    return any(hasattr(type(argument), "__torch_function__") for argument in relevant_args)


def has_torch_function_unary(argument: Any) -> bool:
    """``has_torch_function((argument,))``."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """``has_torch_function(arguments)``."""
    return has_torch_function(arguments)


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether `func` is a method or property of Tensor."""
    return any(func is found for kind in Tensor.__mro__ for found in vars(kind).values())
