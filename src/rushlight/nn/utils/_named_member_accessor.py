"""Exchange of one tensor of a module, which need be no Parameter: for packages that run modules with other weights."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

__all__ = ["set_tensor", "swap_tensor"]

MISSING = object()  # what stands for a tensor that was not there


def _check(module: Any, name: str, tensor: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Put a tensor into a module: among its parameters or buffers where the name is theirs, else as an attribute."""
    _check(module, name, tensor)
    for own in (module._parameters, module._buffers):
        if name in own:
            own[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """As `set_tensor`; the tensor that was there is returned, to be swapped back.

    Raises AttributeError where there is none, unless `allow_missing`: swapping back what that returns takes the name away.
    Raises TypeError for an attribute that is no tensor, KeyError for a name with a dot.
    """
    _check(module, name, tensor)
    for own in (module._parameters, module._buffers):
        if name in own:
            former = own.pop(name) if tensor is MISSING else own[name]
            if tensor is not MISSING:
                own[name] = tensor
            return former
    former = getattr(module, name, MISSING)
    if former is MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if former is not MISSING and not isinstance(former, Tensor):
        raise TypeError(f"attribute `{name}`: {former} is not an instance of torch.Tensor")
    if tensor is MISSING:
        if former is not MISSING:
            delattr(module, name)
    else:
        setattr(module, name, tensor)
    return former
