"""Variable: the deprecated name under which tensors once were differentiated."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.storage import storage_of
from rushlight.tensor import Tensor, wrap


class _VariableMeta(type):
    """Every tensor counts as a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor, requires_grad=False)` gives a tensor: a new leaf on the same memory.

    Raises TypeError for what is no tensor.

    >>> import rushlight as torch
    >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    >>> type(x) is torch.Tensor, isinstance(x, torch.autograd.Variable), x.requires_grad
    (True, True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                          UserWarning, stacklevel=2)  # fmt: skip
        if data is None:
            return wrap(np.empty(0, dtypes.get_default_dtype().numpy)).requires_grad_(requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = wrap(data._array)
        made._storage = storage_of(data)
        return made.requires_grad_(requires_grad)
