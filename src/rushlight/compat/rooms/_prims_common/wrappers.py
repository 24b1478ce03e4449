"""``torch._prims_common.wrappers``: functions that write into `out`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []


def _maybe_remove_out_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside one that takes `out`, or the function itself."""
    inner: Callable[..., Any] = getattr(fn, "_torch_decompositions_out_wrapper_fn", fn)
    return inner
