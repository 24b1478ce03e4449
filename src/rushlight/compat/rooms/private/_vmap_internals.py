"""``torch._vmap_internals``: the older name of `torch.vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.func import vmap

__all__ = ["_vmap", "vmap"]


def _vmap(
    func: Callable[..., Any], in_dims: object = 0, out_dims: object = 0, allow_none_pass_through: bool = False
) -> object:
    """`torch.vmap`, in which None among the arguments passes through in any case."""
    return vmap(func, in_dims, out_dims)
