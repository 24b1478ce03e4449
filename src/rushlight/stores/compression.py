"""Saved tensors in fewer bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.stores import codecs
from rushlight.stores.errors import size
from rushlight.stores.store import Store


class CompressStore(Store):
    """Keeps saved tensors in fewer bytes.

    Args:
        how: what becomes of floating-point and complex tensors.
            "bf16": bfloat16, rounded to nearest even: half of float32. Relative error at most 2^-8 (0.39 %), of float64
            numbers under 1.2e-38 an absolute one of 1e-40. A tensor with numbers over 3.38e38 stays as it is; float16 and
            bfloat16 do too.
            "int8": multiples of a scale for each 256 elements in the order of memory: a quarter of float32. Absolute error
            at most 1/254 of the largest magnitude among the 256, or 1/127 of it with `stochastic`, and 1e-43, which counts
            under 1e-40. Tensors with infinities or NaN stay as they are.
            "lossless": exact. Zeros are left out, where there are many (after relu and dropout); of what is left, the bytes with
            signs and exponents take as many bits as their frequency asks for (float32: five sixths of the bytes, bfloat16:
            two thirds), at some 2 GB/s of a thread. What repeats goes through zlib.
        stochastic: round up or down at random, so that errors average out. The numbers come from a generator of the
            store's own: `torch.manual_seed` has no part in it.
        Further: the filters of every store.

    Bool and integer tensors stay exact in each: bool as bits, integers in the smallest type that holds them.

    >>> import rushlight as torch
    >>> from rushlight import stores
    >>> x = torch.linspace(0, 1, 4096, requires_grad=True)
    >>> with stores.compress("bf16") as store:
    ...     y = x.sin().exp().sum()
    >>> y.backward()
    >>> store.stats()["bytes"], store.stats()["compressed_bytes"]
    (16384, 8192)
    """

    kind = "compress"

    def __init__(self, how: str, *, stochastic: bool = False, **filters: Any):
        super().__init__(**filters)
        if how not in ("bf16", "int8", "lossless"):
            raise ValueError(f'stores.compress: expected "bf16", "int8" or "lossless", got {how!r}')
        if stochastic and how != "int8":
            raise ValueError(f'stores.compress: stochastic rounding is of "int8", got {how!r}')
        self.how, self.exact = how, how == "lossless"
        self.generator = np.random.default_rng(0) if stochastic else None
        self.compressed = self.raw = 0

    def encode(self, array: Array, guard: Callable[..., Any] | None) -> tuple[list[Any], Any]:
        found = self.coded(array) or ([array.copy()], None)
        self.raw += array.nbytes
        self.compressed += sum(part.nbytes for part in found[0])
        return found

    def coded(self, array: Array) -> codecs.Coded:
        """The array in the first form that helps."""
        if array.dtype == np.bool_:
            return codecs.bits(array)
        if array.dtype.kind in "iu":
            return codecs.narrowed(array) or (codecs.lossless(array) if self.how == "lossless" else None)
        if self.how == "bf16":
            return codecs.halved(array)
        if self.how == "int8":
            return codecs.quantized(array, self.generator)
        return codecs.lossless(array)

    def decode(self, parts: list[Any], note: tuple[Any, ...] | None, count: int, dtype: np.dtype[Any]) -> Any:
        return parts[0] if note is None else codecs.BACK[note[0]](parts, note, count, dtype)

    def stats(self) -> dict[str, Any]:
        """As of every store; `raw_bytes` went in, `compressed_bytes` came out."""
        return {**super().stats(), "raw_bytes": self.raw, "compressed_bytes": self.compressed}

    def arguments(self) -> list[str]:
        return [repr(self.how), *super().arguments()]

    def state(self) -> str:
        return f"{super().state()} to {size(self.compressed)}"
