"""Subclasses of Tensor: what is said of those whose results or operators PyTorch would treat in another way.

Operators call no ``__torch_function__`` here, and their results are plain tensors.  A class that overrides it and keeps
its numbers elsewhere has no memory of its own that operators could use; of every other class a warning says once what
becomes of its results.
"""

from __future__ import annotations

import weakref
from typing import Any, NoReturn

from rushlight import caller

_known: weakref.WeakSet[type] = weakref.WeakSet()


class NoMemory:
    """What stands in the place of the array of a tensor that was made without data, for operators to find."""

    __slots__ = ("cls",)

    def __init__(self, cls: type):
        self.cls = cls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def refuse(self, *args: Any) -> NoReturn:
        """Raise the error for an operator on a tensor without memory."""
        raise TypeError(f"{self.cls.__name__}.__torch_function__ is not called: operators would compute on the tensor's own "
                        "memory, and this one was made without any. Give Tensor.__new__ the data, or pass the tensor "
                        "that it wraps to the operator")  # fmt: skip

    __getitem__ = __setitem__ = __len__ = __iter__ = __array__ = refuse


def overrides(cls: type) -> bool:
    """Whether a class has a ``__torch_function__`` to be called: not one that is switched off, as a Parameter's is."""
    return getattr(getattr(cls, "__torch_function__", None), "__name__", "") not in (
        "",
        "_disabled_torch_function_impl",
    )


def note(cls: type) -> None:
    """Warn, once for each class outside this package, of what becomes of results."""
    if cls in _known or cls._plain_results:  # type: ignore[attr-defined]
        return
    _known.add(cls)
    does = "its __torch_function__ is not called, and results" if overrides(cls) else "results"
    caller.warn(f"{cls.__name__} is a subclass of Tensor: {does} of operators on it are plain Tensors. Use "
                f"result.as_subclass({cls.__name__}) where its class matters")  # fmt: skip
