"""Tensors as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.tensor import Tensor


def _repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    body = np.array2string(self._array.astype(np.float32) if self._array.dtype.kind == "V" else self._array, separator=", ",
                           precision=4, prefix="tensor(")  # fmt: skip
    extra = f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn is not None else \
        ", requires_grad=True" if self.requires_grad else ""  # fmt: skip
    return f"tensor({body}{extra})"


Tensor.__repr__ = _repr  # type: ignore[method-assign]
