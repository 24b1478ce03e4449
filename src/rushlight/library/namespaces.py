"""``torch.ops``: operators by namespace and name."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from rushlight.dispatch.registry import NAMESPACES
from rushlight.library.operators import OpOverload, OpOverloadPacket
from rushlight.ops.python import aten as known
from rushlight.tensor import Tensor

__all__ = ["Namespace", "aten", "load_library", "loaded_libraries", "packets", "register"]

packets: dict[str, dict[str, OpOverloadPacket]] = {}
loaded_libraries: set[str] = set()

# Compiled libraries of packages, by the end of their path, and who supplies their operators here.
SUPPLIED = {"torchvision/_C": "rushlight.compat.torchvision_operators"}

# Operators of PyTorch that libraries name, as keys of tables, and that no function of the public interface is.
KEYS = frozenset({
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_fft_c2c", "_fused_adam_", "_grouped_mm",
    "_is_all_true", "_local_scalar_dense", "_pin_memory", "_reshape_alias", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_cudnn_attention_backward", "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward", "convolution_backward",
    "_sparse_addmm",
    "_sparse_mm_reduce_impl", "_to_copy", "_unsafe_view", "alias", "is_pinned", "lift_fresh",
    "lift_fresh_copy", "native_batch_norm", "native_dropout", "native_group_norm", "native_layer_norm", "slice",
    "slice_backward", "sym_constrain_range_for_size", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride", "threshold_backward",
})  # fmt: skip

SAME = {"alias": lambda x: x.view_as(x), "_unsafe_view": lambda x, size: x.reshape(size)}


def register(op: OpOverload) -> None:
    """Put an operator where `torch.ops` finds it."""
    packet = packets.setdefault(op.namespace, {}).setdefault(op._opname, OpOverloadPacket(op.namespace, op._opname))
    packet._overloads[op._overloadname] = op


def load_library(path: Any) -> None:
    """Take note of a package's compiled operators, where they are supplied here.

    Raises OSError for any other library: compiled code made for PyTorch's tensors has nothing to work on here.
    """
    for end, module in SUPPLIED.items():
        if Path(path).with_suffix("").with_suffix("").as_posix().endswith(end):
            importlib.import_module(module)
            loaded_libraries.add(str(path))
            return
    raise OSError(
        f"Could not load this library: {path}: compiled operators made for PyTorch cannot run on rushlight's tensors"
    )


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str):
        self.name, self.__name__ = name, f"torch.ops.{name}"

    def __getattr__(self, name: str) -> Any:
        found = packets.get(self.__dict__["name"], {}).get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *packets.get(self.name, {})]

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


class Borrowed:
    """A function of the public interface under its name in ``torch.ops.aten``; every overload of it is itself."""

    def __init__(self, name: str, function: Any):
        self.__name__, self._function = name, function
        self._qualified_op_name = f"aten::{name}"

    def __getattr__(self, overload: str) -> Any:
        known.check_overload(self.__name__, overload)
        return self

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def name(self) -> str:
        """The name with its namespace."""
        return self._qualified_op_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(
                f"torch.ops.aten.{self.__name__} is known by name alone here: nothing computes it"
            )
        return self._function(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class Aten(Namespace):
    """The package's own operators, functions and methods under PyTorch's names of operators."""

    def __getattr__(self, name: str) -> Any:
        if name in packets.get("aten", {}):
            return packets["aten"][name]
        try:
            found = getattr(known, name)
        except AttributeError:
            found = borrowed(name)
        vars(self)[name] = found
        return found


def borrowed(name: str) -> Borrowed:
    """A function or method of that name as an operator.  Raises AttributeError where there is none."""
    for function in (NAMESPACES[""].get(name), getattr(Tensor, name, None)):
        if callable(function) and not isinstance(function, type) and not name.startswith("__"):
            return Borrowed(name, function)
    if name not in KEYS:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return Borrowed(name, SAME.get(name))


aten = Aten("aten")
_namespaces: dict[str, Namespace] = {"aten": aten}


def __getattr__(name: str) -> Any:
    if name.startswith(("__", "pytest")):  # which are asked of any module
        raise AttributeError(name)
    return _namespaces.setdefault(name, Namespace(name))
