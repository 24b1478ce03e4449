"""``torch._functorch.eager_transforms``: the transformations of `torch.func`, and what they are made of."""

from __future__ import annotations

from typing import Any

from rushlight.basics.tree import tree_flatten, tree_unflatten
from rushlight.func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from rushlight.func.reverse import chosen

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "tree_flatten",
           "tree_unflatten", "vjp"]  # fmt: skip


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that `argnums` names: a tuple, or for a number the argument itself unless `as_tuple`.

    Raises RuntimeError for what is no such number.
    """
    places = chosen(args, argnums)
    if isinstance(argnums, int) and not as_tuple:
        return args[places[0]]
    return tuple(args[place] for place in places)
