"""Exchange of one tensor of a module, which need be no Parameter: for packages that run modules with other weights."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

__all__ = ["set_tensor", "swap_tensor"]

MISSING = object()  # what stands for a tensor that was not there


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Put a tensor, or None, into a module: among its parameters or buffers where the name is theirs, else as an attribute.

    Raises TypeError for what is no module or no tensor, KeyError for a name that leads into another module.
    """
    _check("set_tensor", module, name, tensor)
    own = next((place for place in (module._parameters, module._buffers) if name in place), None)
    if own is None:
        setattr(module, name, tensor)
    else:
        own[name] = tensor


def swap_tensor(module: Module, name: str, tensor: Tensor, allow_missing: bool = False) -> Any:
    """As `set_tensor`; the tensor that was there is returned, to be swapped back.

    Raises AttributeError where there is none, unless `allow_missing`: swapping back what that returns takes the name away.
    Raises TypeError for an attribute that is no tensor.
    """
    _check("swap_tensor", module, name, tensor)
    former = getattr(module, name, MISSING)
    if former is MISSING and not allow_missing:
        raise AttributeError(
            f"swap_tensor(): a {type(module).__name__} has no {name!r}: with allow_missing=True it gets one"
        )
    if not (former is None or former is MISSING or isinstance(former, Tensor)):
        raise TypeError(
            f"swap_tensor(): {name!r} of a {type(module).__name__} is of type {type(former).__name__}, no tensor"
        )
    if tensor is not MISSING:
        set_tensor(module, name, tensor)
    elif former is not MISSING:
        delattr(module, name)
    return former


def _check(function: str, module: Module, name: str, tensor: Tensor) -> None:
    """Raise TypeError or KeyError for arguments of the wrong kind."""
    if not isinstance(module, Module):
        raise TypeError(f"{function}(): argument 'module' must be Module, not {type(module).__name__}")
    if not (tensor is None or tensor is MISSING or isinstance(tensor, Tensor)):
        raise TypeError(f"{function}(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    if not name or "." in name:
        raise KeyError(f"{function}(): {name!r} is no name within one module: give the module that holds the tensor")
