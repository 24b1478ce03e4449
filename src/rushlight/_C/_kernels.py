"""Which keys of dispatch a tensor has, and for which an operator has something."""

from __future__ import annotations

from typing import Any

from rushlight._C import DispatchKey, DispatchKeySet
from rushlight.library import namespaces
from rushlight.ops.python import aten as known
from rushlight.tensor import Tensor, sparse_coo, strided

OWN = ("CPU", "Meta", "Autograd")  # the keys for which the package's own operators have something


def _dispatch_keys(tensor: Tensor) -> DispatchKeySet:
    """The keys by which PyTorch would take calls with a tensor."""
    key = DispatchKey
    backend = "Meta" if tensor.is_meta else "CPU"
    layout = "" if tensor.layout is strided else "Sparse" if tensor.layout is sparse_coo else "SparseCsr"
    found = [key[layout + backend], key.ADInplaceOrView, key[f"Autograd{backend}"]]
    found += [key.AutocastCPU] * (not tensor.is_meta)
    found += [key.Conjugate] * bool(tensor.is_conj()) + [key.Negative] * bool(tensor.is_neg())
    found += [key.Python, key.PythonTLSSnapshot] if tensor._dispatched else []
    return DispatchKeySet(*found)


def _kernels(name: str) -> Any:
    """What an operator has, by key; None where there is no such operator.  name: with its namespace, and its overload or without."""
    namespace, _, rest = name.partition("::")
    opname, _, overload = rest.partition(".")
    packet = namespaces.packets.get(namespace, {}).get(opname)
    if packet is not None:
        found = packet._overloads.get(overload or "default")
        return None if found is None else found.kernels
    if namespace != "aten":
        return None
    try:
        known.packet(opname)
    except AttributeError:
        return None
    return dict.fromkeys(OWN)


def _dispatch_has_kernel(name: str) -> bool:
    """Whether there is an operator of this name."""
    return _kernels(name) is not None


def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch: str | DispatchKey) -> bool:
    """Whether an operator has something for a key.  Raises RuntimeError where there is no such operator."""
    found = _kernels(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return (dispatch if isinstance(dispatch, str) else dispatch.name) in found
