"""``torch._functorch.vmap``: names that packages import to have vmap take containers of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight import absent
from rushlight.func import vmap
from rushlight.tensor import Tensor
from rushlight.utils._pytree import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["Tensor", "tree_flatten", "tree_unflatten", "vmap"]

absent.names(
    globals(), "levels of torch.func are no wrappers of tensors here: use torch.func.vmap, of functions of tensors", "",
    "_add_batch_dim _broadcast_to_and_flatten _maybe_remove_batch_dim _remove_batch_dim",
)  # fmt: skip


def _get_name(func: Callable[..., Any]) -> str:
    """What messages call a function."""
    return str(getattr(func, "__name__", repr(func)))
