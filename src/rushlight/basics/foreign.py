"""PyTorch's own tensors and functions, where PyTorch is in the same process: they and ours do not know each other.

Each library would ask the other's Tensor what to do by ``__torch_function__``, and what that says is to call the function:
without end.  So neither is asked; what is given to the other library is refused, with what to do instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


# Where rushlight goes by the name of torch, so does its `_C`, which publishes its own Tensor by the name of PyTorch's class.
def base() -> type | None:
    """The class that PyTorch's tensors are made of; None where there is no PyTorch in this process."""
    named = sys.modules.get("torch._C")
    return None if named is sys.modules.get("rushlight._C") else getattr(named, "TensorBase", None)


def is_theirs(kind: type) -> bool:
    """Whether a class is that of PyTorch's tensors."""
    theirs = base()
    return theirs is not None and issubclass(kind, theirs)


def made_there(func: Callable[..., Any]) -> bool:
    """Whether a function, method or property's ``__get__`` is one of PyTorch's."""
    theirs = base()
    if theirs is None or type(func).__module__.startswith("rushlight."):  # whose operators say PyTorch's modules
        return False
    for x in (func, getattr(func, "__self__", None)):
        module, owner = getattr(x, "__module__", None), getattr(x, "__objclass__", None)
        if owner is theirs or (isinstance(module, str) and module.partition(".")[0] == "torch"):
            return True
    return False


def check_ours(func: Callable[..., Any]) -> None:
    """Raise TypeError for a function of PyTorch, which asks one of our tensors what it does with it."""
    if made_there(func):
        raise TypeError(f"{getattr(func, '__name__', func)}(): a tensor of rushlight was given to a function of PyTorch: "
                        "give it torch.from_numpy(x.numpy())")  # fmt: skip


def kind_of(x: Any) -> str:
    """What errors call the class of an argument that should be another: its name, and of what is PyTorch's what to do."""
    name = type(x).__name__
    if hasattr(type(x), "freed_bytes"):  # a tensor, whose array is gone
        x.refuse()
    if is_theirs(type(x)):
        return f"{name} of PyTorch: give rushlight.from_numpy(x.numpy())"
    if type(x).__module__ == "torch" and base() is not None and name in ("dtype", "device"):
        return f"{name} of PyTorch: give {f'rushlight.{x}'.replace('torch.', '') if name == 'dtype' else repr(str(x))}"
    return name
