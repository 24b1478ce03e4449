"""What autocast converts: operands of operators that declare how they compute under it."""

from __future__ import annotations

from typing import Any

from rushlight.basics import caller, dtypes
from rushlight.basics.state import modes
from rushlight.tensor import Tensor

_FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


class Casting:
    """The mode `autocast` while a context is active: operands in, operands in the dtype of the operator's kind out.

    "lower": products, in the lower dtype; "float32": sums of many terms, and what overflows.  float64 stays as it is.
    Parameters are converted once in the outermost context, so that their copies are shared.
    """

    def __init__(self, dtype: dtypes.dtype, cached: bool, copies: dict[int, tuple[Tensor, Tensor]]):
        self.dtype, self.cached, self.copies = dtype, cached, copies

    def anew(self) -> Casting:
        """The same for what is computed again: nothing is kept, for its context may have ended."""
        return Casting(self.dtype, False, {})

    def __call__(self, kind: str, given: Any) -> Any:
        """`given`, a tensor or a container of some, converted."""
        if isinstance(given, Tensor):
            return self.tensor(given, self.dtype if kind == "lower" else dtypes.float32)
        if isinstance(given, (tuple, list)) and any(isinstance(x, (Tensor, tuple, list)) for x in given):
            return type(given)([self(kind, x) for x in given]) if type(given) in (tuple, list) else given
        return {k: self(kind, x) for k, x in given.items()} if type(given) is dict else given

    def tensor(self, x: Tensor, dtype: dtypes.dtype) -> Tensor:
        """One tensor, itself where nothing is to be done."""
        have = x.dtype
        if have is dtype or have not in _FLOATS or getattr(x, "is_sparse", False):
            return x
        if not (self.cached and modes.grad and x.requires_grad and x.is_leaf and dtype is self.dtype):
            return x.to(dtype)
        found = self.copies.get(id(x))
        if found is None or found[0] is not x:
            found = self.copies[id(x)] = x, x.to(dtype)
        return found[1]


def usable(name: str, device_type: str, enabled: bool) -> bool:
    """Whether there is something to do; warns where CUDA was asked for, as PyTorch does without it.

    Raises RuntimeError for an unknown kind of device, ValueError for what is no name of one.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in ("cpu", "cuda"):
        raise RuntimeError(f"{name}: expected device_type 'cpu' or 'cuda', got {device_type!r}")
    if enabled and device_type == "cuda":
        caller.warn(f"{name}: CUDA is not available, disabling; on the CPU {name}('cpu') does it")
    return enabled and device_type == "cpu"
