"""Types of sparse tensors by their older names, such as torch.sparse.FloatTensor: they make such tensors and know them."""

from __future__ import annotations

import functools
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.sparse.construct import sparse_coo_tensor
from rushlight.sparse.tensor import Sparse
from rushlight.tensor import Tensor

__all__ = ["older_types"]

KINDS = {"BFloat16": dtypes.bfloat16, "Byte": dtypes.uint8, "Char": dtypes.int8, "Double": dtypes.float64,
         "Float": dtypes.float32, "Half": dtypes.float16, "Int": dtypes.int32, "Long": dtypes.int64,
         "Short": dtypes.int16}  # fmt: skip


class Kind(type):
    """What `torch.sparse.FloatTensor` is: called it makes a tensor in the layout COO, asked it knows those of its dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Sparse) and instance.is_sparse and instance.dtype is cls.dtype

    def __call__(
        cls,
        *args: Any,
        size: tuple[int, ...] | None = None,
        device: device | str | int | None = None,
    ) -> Sparse:
        """Of indices and values, whose dtype stays, with a size or without; or of sizes alone.  TypeError for others."""
        if args and isinstance(args[0], Tensor) and len(args) in (2, 3):
            return sparse_coo_tensor(args[0], args[1], args[2] if len(args) == 3 else size, device=device)
        if any(isinstance(n, Tensor) for n in args):
            raise TypeError(
                f"{cls.__name__}: expected indices, values and a size, or sizes alone, got {len(args)} arguments"
            )
        given = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args or size or (0,)
        return sparse_coo_tensor(tuple(given), dtype=cls.dtype, device=device)


@functools.cache
def of_dtype(dtype: dtypes.dtype) -> Kind:
    """What makes sparse tensors of a dtype, and knows them: one type for each."""
    prefix = next((name for name, each in KINDS.items() if each is dtype), "")
    body = {"dtype": dtype, "__module__": "torch.sparse", "__doc__": f"Sparse tensors of {dtype}."}
    return Kind(f"{prefix}Tensor", (), body)


def older_types() -> dict[str, Any]:
    """The types by name."""
    return {f"{prefix}Tensor": of_dtype(dtype) for prefix, dtype in KINDS.items()}
