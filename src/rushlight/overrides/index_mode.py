"""A mode in which indices without dimensions index, and are not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.overrides.modes import TorchFunctionMode
from rushlight.tensor import Tensor

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Within it, ``x[i, j]`` with tensors of no dimensions takes the element without reading the numbers.

    So a function may be mapped over its indices by vmap, where a number differs from sample to sample.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[Any, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[Any, Any] | None = None,
    ) -> Any:
        """The call as it is, but for indexing by such tensors alone."""
        if func is Tensor.__getitem__:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if index and all(isinstance(i, Tensor) and i.dim() == 0 and not _is_bool(i) for i in index):
                return args[0][tuple(i.unsqueeze(0) for i in index)].squeeze(0)
        return func(*args, **(kwargs or {}))


def _is_bool(index: Tensor) -> bool:
    return str(index.dtype).endswith("bool")
