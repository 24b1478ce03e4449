"""``torch._utils``: how files say that tensors are rebuilt, and small questions that libraries ask."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.devices import device as _device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.named import named
from rushlight.serialization.rebuild import (
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_wrapper_subclass,
)
from rushlight.tensor import Tensor
from rushlight.utils.data._utils.errors import Failure

__all__ = ["ExceptionWrapper", "_element_size", "_flatten_dense_tensors", "_get_available_device_type",
           "_get_device_index", "_import_dotted_name", "_rebuild_parameter", "_rebuild_parameter_with_state",
           "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_wrapper_subclass",
           "_take_tensors", "_unflatten_dense_tensors"]  # fmt: skip


class ExceptionWrapper(Failure):
    """An exception with its traceback as text, to be raised elsewhere.

    exc_info: as `sys.exc_info()` gives it, default: of the exception that is being handled; where: what its message says of where
    it was raised.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        error: Any = (sys.exc_info() if exc_info is None else exc_info)[1]
        super().__init__(error, where)
        self.exc_type, self.exc_msg = self.kind, self.text


def _element_size(dtype: dtype) -> int:
    """Bytes of an element."""
    return int(dtype.itemsize)


def _get_available_device_type() -> None:
    """The kind of accelerator that is there: none."""


def _get_all_device_indices() -> None:
    """The numbers of the accelerators that are there: None, as in PyTorch without one."""


def _is_privateuse1_backend_available() -> bool:
    """Whether there is a device that a package has brought: none."""
    return False


def _get_device_module(device_type: str) -> object:
    """The module torch.cpu or torch.cuda.  Raises RuntimeError for another kind of device."""
    return importlib.import_module("rushlight.compat.names").get_device_module(device_type)


def _get_device_index(device: device | str | int | None, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device: -1 of the CPU where that is allowed.  Raises ValueError for what has none."""
    if isinstance(device, int):
        return device
    found = None if device is None else _device(device)
    if found is not None and found.type == "cpu" and allow_cpu:
        return -1
    if found is not None and found.index is not None:
        return int(found.index)
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")


def _import_dotted_name(name: str) -> object:
    """What a name with dots leads to, its first part a module."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found


def _flatten_dense_tensors(tensors: Sequence[Any]) -> object:
    """The elements of all tensors in one.  -> (N)"""
    return named.cat([t.contiguous().view(-1) for t in tensors])


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Tensors of one dtype each, in lists of at most so many bytes; one that is larger is alone."""
    lists: dict[str, list[Tensor]] = {}
    bytes_of: dict[str, int] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        if lists.get(kind) and bytes_of[kind] + size > size_limit:
            yield lists.pop(kind)
            bytes_of[kind] = 0
        lists.setdefault(kind, []).append(tensor)
        bytes_of[kind] = bytes_of.get(kind, 0) + size
    yield from lists.values()


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Views of `flat` with the shapes of these tensors.  flat: (N)"""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(like) for part, like in zip(parts, tensors, strict=True))


def try_import(module_name: str) -> Any:
    """A module, or None where there is none of that name."""
    found = sys.modules.get(module_name)
    if found is None and importlib.util.find_spec(module_name) is not None:
        found = importlib.import_module(module_name)
    return found


def get_tensor_metadata(tensor: Tensor) -> dict[str, bool]:
    """Which of its bits a tensor has set: "conj", "neg"."""
    return {name: True for name, bit in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if bit}
