"""``torch.ops``: operators by namespace and name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight.library import aten as _meanings  # noqa: F401  (it says what operators compute)
from rushlight.library.operators import Declared, DeclaredPacket
from rushlight.ops.python import aten as known

if TYPE_CHECKING:
    import os


__all__ = ["Namespace", "aten", "load_library", "loaded_libraries", "packets", "register"]

packets: dict[str, dict[str, DeclaredPacket]] = {}
awaited: dict[str, dict[str, Callable[..., Any]]] = {}  # kernels by dispatch key, of operators that are declared later
loaded_libraries: set[str] = set()

# Compiled libraries of packages, by the end of their path, and who supplies their operators here.
SUPPLIED = {
    "torchvision/_C": "rushlight.compat.torchvision_operators",
    "torchaudio/lib/_torchaudio": "rushlight.compat.torchaudio_operators",
    "torchaudio/lib/libtorchaudio": "rushlight.compat.torchaudio_operators",
}


def register(op: Declared) -> None:
    """Put an operator where `torch.ops` finds it."""
    packet = packets.setdefault(op.namespace, {}).setdefault(op._opname, DeclaredPacket(op.namespace, op._opname))
    packet._overloads[op._overloadname] = op
    for key, fn in awaited.pop(op.name(), {}).items():
        op.add_kernel(key, fn)


def forget(declared: Iterable[Declared]) -> None:
    """Take operators from where `torch.ops` finds them."""
    for op in declared:
        packets[op.namespace][op._opname]._overloads.pop(op._overloadname, None)
        if not packets[op.namespace][op._opname]._overloads:
            del packets[op.namespace][op._opname]


def has(name: str) -> bool:
    """Whether an operator of a program is declared, by its name with its overload's."""
    namespace, _, rest = name.partition("::")
    word, _, which = rest.partition(".")
    packet = packets.get(namespace, {}).get(word)
    return packet is not None and (not which or which in packet._overloads)


def load_library(path: str | os.PathLike[str]) -> None:
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


class Aten(Namespace):
    """The package's own operators, functions and methods under PyTorch's names of operators."""

    def __getattr__(self, name: str) -> Any:
        if name in packets.get("aten", {}):
            return packets["aten"][name]
        found = vars(self)[name] = known.packet(name)
        return found


# Operators between processes, by name alone: keys of tables; `torch.distributed` computes what they stand for.
COLLECTIVES = {
    "_c10d_functional": "all_gather_into_tensor all_gather_into_tensor_coalesced all_reduce all_reduce_ all_reduce_coalesced "
    "all_to_all_single broadcast broadcast_ reduce_scatter_tensor reduce_scatter_tensor_coalesced wait_tensor _wrap_tensor_autograd",
    "c10d_functional": "all_gather_into_tensor all_reduce all_to_all_single broadcast reduce_scatter_tensor wait_tensor",
    "c10d": "_allgather_base_ _reduce_scatter_base_ allgather_ allgather_into_tensor_coalesced_ allreduce_ alltoall_ alltoall_base_ "
    "barrier broadcast_ gather_ recv_ reduce_ reduce_scatter_ scatter_ send",
}


class Collectives(Namespace):
    """Those of one namespace."""

    def __getattr__(self, name: str) -> Any:
        if name not in COLLECTIVES[self.name].split():
            return super().__getattr__(name)
        found = vars(self)[name] = known.Packet(name, self.name)
        return found


aten = Aten("aten")
_namespaces: dict[str, Namespace] = {"aten": aten, **{name: Collectives(name) for name in COLLECTIVES}}


def __getattr__(name: str) -> Any:
    if name.startswith(("__", "pytest")):  # which are asked of any module
        raise AttributeError(name)
    return _namespaces.setdefault(name, Namespace(name))
