"""``torch._functorch.vmap``: names that packages import to have vmap take containers of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import absent
from rushlight.func import vmap
from rushlight.tensor import Tensor
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["Tensor", "tree_flatten", "tree_unflatten", "vmap"]

absent.names(
    globals(),
    "levels of torch.func are no wrappers of tensors here: use torch.func.vmap, of functions of tensors",
    "",
    "_add_batch_dim _broadcast_to_and_flatten _create_batched_inputs _maybe_remove_batch_dim _process_batched_inputs _remove_batch_dim "
    "_unwrap_batched unwrap_batched vmap_impl wrap_batched",
)


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., tuple[Any, Any]]:
    """`func` mapped over dimensions of its arguments: what it gives, samples first, and a tree of zeros, where the samples are."""

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        found = vmap(func, in_dims, 0, randomness)(*args, **kwargs)
        leaves, spec = tree_flatten(found)
        return found, tree_unflatten([0] * len(leaves), spec)

    return inner


def _get_name(func: Callable[..., Any]) -> str:
    """What messages call a function."""
    return str(getattr(func, "__name__", repr(func)))
