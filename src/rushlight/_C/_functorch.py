"""``torch._C._functorch``: questions about the transformations of `torch.func`."""

from __future__ import annotations

from typing import Any

from rushlight import absent

__all__ = ["is_batchedtensor", "is_legacy_batchedtensor"]


def is_legacy_batchedtensor(tensor: object) -> bool:
    """Whether a tensor is one of an older vmap: no."""
    return False


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is mapped over by vmap."""
    return bool(getattr(tensor._array, "interpreted", False))


absent.names(
    globals(), "levels of torch.func are no wrappers of tensors here: use torch.func.vmap", "",
    "_add_batch_dim _remove_batch_dim get_unwrapped",
)  # fmt: skip
