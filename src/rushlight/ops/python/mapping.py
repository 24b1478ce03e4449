"""Questions about dtypes, copies of complex views, and Python functions applied element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.dispatch.dims import also_named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function
from rushlight.engine import inplace
from rushlight.ops.elementwise.shared import require_tensors
from rushlight.signs import to_hold
from rushlight.tensor import Tensor


@function()
@also_named(tensor="tensor1", other="tensor2")
def result_type(tensor1: Tensor, tensor2: Tensor) -> dtype:
    """The dtype of arithmetic between two tensors or numbers.

    >>> import rushlight as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    for position, given in enumerate((tensor1, tensor2), 1):
        if not isinstance(given, Tensor | int | float | complex | np.generic):
            raise TypeError(f"result_type(): argument 'tensor{position}' (position {position}) must be Tensor or Number, not "
                            f"{kind_of(given)}")  # fmt: skip
    return dtypes.result_dtype([x.item() if isinstance(x, np.generic) else raw(x) for x in (tensor1, tensor2)])


@function()
def can_cast(from_: Any, to: dtype) -> bool:
    """Whether arithmetic results of dtype `from_` may be stored in a tensor of dtype `to`."""
    found: list[Any] = []
    for position, (name, given) in enumerate((("from_", from_), ("to", to)), 1):
        found.append(dtypes.PYTHON.get(given, given) if isinstance(given, type) else given)
        if not isinstance(found[-1], dtypes.dtype):
            raise TypeError(f"can_cast(): argument '{name}' (position {position}) must be torch.dtype, not "
                            f"{kind_of(given)}")  # fmt: skip
    return bool(dtypes.can_cast(*found))


def _replaced(name: str, self: Tensor, fn: Callable[..., Any], *others: Tensor) -> Tensor:
    """Put fn of each element, and those of `others` beside it, in its place."""
    require_tensors(name, self=self, **{f"tensor{i + 1}": t for i, t in enumerate(others)})
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use detach().{name}() of it instead: it calls a "
                           "Python function, which has no derivative")  # fmt: skip
    inplace.check(self, False)
    arrays = np.broadcast_arrays(self._array, *(t._array for t in others))
    if arrays[0].shape != self._array.shape:
        raise RuntimeError(f"{name}(): the tensors do not broadcast to shape {list(self.shape)}")
    values = [fn(*elements) for elements in zip(*(a.astype(object).ravel() for a in arrays), strict=True)]
    for value in values:
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f"{name}(): the function must return numbers, not {type(value).__name__}")
    found = np.array(values, dtype=self._held.dtype).reshape(self._held.shape)
    self._held[...] = to_hold(self, found)
    inplace.written(self, name)
    return self


def apply_(self: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by callable(element), one after the other: slow, for convenience."""
    return _replaced("apply_", self, callable)


def map_(self: Tensor, tensor: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by callable(element, element of `tensor`), one after the other."""
    return _replaced("map_", self, callable, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by callable(element, element of `x`, element of `y`), one after the other."""
    return _replaced("map2_", self, callable, x, y)


for _fn in (apply_, map_, map2_):
    setattr(Tensor, _fn.__name__, _fn)
