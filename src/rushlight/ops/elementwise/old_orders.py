"""Arguments in the order that PyTorch had once: numbers between the tensors, `addmm(beta, input, alpha, mat1, mat2)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics import caller
from rushlight.tensor import Tensor

# Where numbers (n) stand among tensors (t), as a function and as a method, and what they are.
_SCALED = {"nttt": ("beta",), "ntntt": ("beta", "alpha"), "tntt": ("beta",), "tnntt": ("beta", "alpha")}
_WEIGHED = {"tntt": ("value",)}
_ADDED = {"tnt": ("alpha",)}


def in_old_order(fn: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """fn(*tensors, **numbers) for arguments with numbers between the tensors, with a warning.

    Raises TypeError where they are in no order that there was.
    """
    name = fn.__name__.rstrip("_").removesuffix("_public")
    orders = _ADDED if name in ("add", "sub") else _WEIGHED if name.startswith("addc") else _SCALED
    order = "".join("t" if isinstance(a, Tensor) else "n" for a in args)
    if orders is _ADDED and order == "tnn":
        return fn(*args[:2], **{**options, "alpha": args[2]})
    names = orders.get(order)
    if names is None:
        given = ", ".join("Tensor" if isinstance(a, Tensor) else type(a).__name__ for a in args)
        raise TypeError(
            f"{fn.__name__.removesuffix('_public')}() received an invalid combination of arguments: ({given})"
        )
    numbers = dict(zip(names, (a for a in args if not isinstance(a, Tensor)), strict=True))
    shown_name = fn.__name__.removesuffix("_public")
    shown = ", ".join(f"{name}={value}" for name, value in numbers.items())
    caller.warn(
        f"{shown_name}: numbers between the tensors are deprecated: give them by name, {shown_name}(..., {shown})"
    )
    return fn(*(a for a in args if isinstance(a, Tensor)), **{**options, **numbers})
