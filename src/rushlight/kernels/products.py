"""Products of 16-bit matrices: bfloat16 by instructions for them (AMX, AVX512-BF16), the others through float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, rounded, widened
from rushlight.kernels.native import loader

if TYPE_CHECKING:
    pass


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_SHARED = 1 << 18  # multiplications from which on threads share one packed factor
_WIDEST = 1 << 26  # elements between the rows of a factor


class Way(NamedTuple):
    """Kernels.  name: of the instructions; panel: columns side by side in their packed right factor; unit: steps of the sum, of which they take multiples"""

    name: str
    product: Callable[..., None]
    attention: Callable[..., None]
    attention_backward: Callable[..., None]
    panel: int
    unit: int


def _find_ways(tables: loader.Tables) -> list[Way]:
    """All that this processor has, the fastest first."""
    found = []
    tiles, dots = tables.get(("bf16", "tiles")), tables.get(("bf16", "products"))
    if tiles is not None and tiles.leave() == 0:
        found.append(Way("AMX", tiles.product_tiles, tiles.attention_tiles, tiles.attention_backward_tiles, 32, 32))
    if dots is not None:
        found.append(Way("AVX512-BF16", dots.product, dots.attention, dots.attention_backward, 48, 2))
    return found


_found: tuple[loader.Tables | None, list[Way]] = (None, [])


def ways() -> list[Way]:
    """The kernels of this processor, the fastest first; none where NumPy has to do it.  Looked for when first asked."""
    global _found
    tables = loader._tables
    if tables is None:
        tables = loader.tables()
    if _found[0] is not tables:
        _found = (tables, _find_ways(tables))
    return _found[1]


_LINE = 16  # 32-bit numbers of a cache line, where the packed factor begins


def _packed_numbers(way: Way, steps: int, columns: int) -> int:
    """32-bit numbers of the right factor (steps, columns) once it is packed."""
    return _LINE + -(-columns // way.panel) * way.panel * -(-steps // way.unit) * way.unit // 2


def working_bytes(rows: int, steps: int, columns: int) -> int | None:
    """Bytes that a product takes while it runs, beside its result; None where there is none for bfloat16."""
    found = ways()
    if not found:
        return None
    return 4 * _packed_numbers(found[0], steps, columns) if rows * steps * columns >= _SHARED else 0


def _laid(x: Array) -> tuple[Array, bool]:
    """A batch of matrices (B, R, C) as unsigned numbers whose rows have no gaps, or their transposes and True."""
    if x.flags.aligned:
        rows, columns = x.strides[1:]
        if (columns == 2 or x.shape[2] == 1) and rows % 2 == 0 and abs(rows) < 2 * _WIDEST:
            return x.view(np.uint16), False
        if (rows == 2 or x.shape[1] == 1) and columns % 2 == 0 and abs(columns) < 2 * _WIDEST:
            return x.swapaxes(1, 2).view(np.uint16), True
    return x.copy(order="C").view(np.uint16), False


def product(
    a: Array, b: Array, row: Array | None = None, more: Array | None = None, alpha: float = 1, beta: float = 1
) -> Array | None:
    """a @ b, sums in float32, with `row` (N) added before the one rounding; None where NumPy has to do it.

    a: (*, M, K), b: (*, K, N) -> (*, M, N), of bfloat16; subnormal factors count as 0. With `more` (*, M, N) instead of a row,
    alpha * a @ b + beta * more, rounded once.
    """
    found = ways()
    if not found or a.dtype != BFLOAT16 or b.dtype != BFLOAT16 or a.ndim < 2 or b.ndim < 2:
        return None
    (rows, steps), columns = a.shape[-2:], b.shape[-1]
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    batch = math.prod(lead)
    if (
        0 in (batch, rows, steps, columns)
        or b.shape[-2] != steps
        or not (row is None or (row.dtype, row.shape) == (BFLOAT16, (columns,)))
        or not (more is None or (more.dtype, more.shape) == (BFLOAT16, (*lead, rows, columns)))
    ):
        return None
    whole = b.ndim == 2 and a.flags.c_contiguous  # one right factor for all: one product of more rows
    lead_rows = (1, batch * rows) if whole else (batch, rows)
    left, turned = _laid(a.reshape(*lead_rows, steps) if whole else _batched(a, lead))
    right, right_turned = _laid(b[None] if whole else _batched(b, lead))
    out = np.empty((*lead, rows, columns), BFLOAT16)
    shared = lead_rows[1] * steps * columns >= _SHARED and (
        lead_rows[0] < 8 or lead_rows[1] * steps * columns > _SHARED << 6
    )
    packed = np.empty(_packed_numbers(found[0], steps, columns), np.uint32) if shared else None
    bias = None if row is None else contiguous(row).view(np.uint16)
    target, added = out.view(np.uint16), None if more is None else contiguous(more).view(np.uint16)
    sizes = (*lead_rows, steps, columns)
    found[0].product(left, right, bias, added, target, packed, turned, right_turned, *sizes, alpha, beta)
    return out


def _batched(x: Array, lead: tuple[int, ...]) -> Array:
    """x (*, R, C) for each of the batch: (B, R, C), without a copy where strides allow it."""
    if x.ndim == 3 and x.shape[:1] == lead:
        return x
    return np.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(-1, *x.shape[-2:])


_BLOCK = 1 << 18  # numbers whose float32 copies are made at once, of 16-bit factors


def of_halves(a: Array, b: Array, out: Any, row: Array | None) -> Any:
    """The product of 16-bit factors: sums in float32, rounded once."""
    found = product(a, b, row)
    if found is None:
        return _through_float32(a, b, out, row)
    if out is None:
        return found
    out[...] = found
    return out


def _through_float32(a: Array, b: Array, out: Any, row: Array | None) -> Any:
    """The product of 16-bit factors, without float32 copies of all of them."""
    if a.ndim == b.ndim == 2:
        found = _matrices(a, b, row)
    elif (a.ndim < 3 and b.ndim < 3) or a.size + b.size <= _BLOCK:
        found = rounded(np.asarray(widened(a) @ widened(b)), a.dtype)
    else:
        found = _batch(a, b)
    if out is None:
        return found
    out[...] = found
    return out


def _batch(a: Any, b: Any) -> Any:
    """Some products at a time, along the first dimension."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (a, b))
    product = np.empty((*lead, a.shape[-2], b.shape[-1]), a.dtype)
    some = _BLOCK * len(a) // max(a.size + b.size + product.size, 1)
    for i in range(0, len(a), some or 1):
        at = slice(i, i + some) if some else i
        product[at] = _through_float32(a[at], b[at], None, None)
    return product


def _matrices(a: Array, b: Array, row: Array | None) -> Array:
    """One product.  `row` is added to each row before it is rounded."""
    rows, steps = a.shape
    if rows < steps:  # cut along the sum
        total = np.zeros((rows, b.shape[1]), "f4")
        some = _steps(rows, b.shape[1])
        for k in range(0, steps, some):
            total += widened(a[:, k : k + some]) @ widened(b[k : k + some])
        return rounded(total if row is None else total + widened(row), a.dtype)
    right, product = widened(b), np.empty((rows, b.shape[1]), a.dtype)
    some = _steps(steps, b.shape[1])
    for i in range(0, rows, some):
        part = widened(a[i : i + some]) @ right
        if row is not None:
            part += widened(row)
        rounded(part, a.dtype, product[i : i + some])
    return product


def _steps(*sizes: int) -> int:
    """How many rows of so many numbers a block has."""
    return max(_BLOCK // max(*sizes, 1), 1)


def work_of_halves(dtype: np.dtype[Any], rows: int, steps: int, columns: int) -> int:
    """Bytes of the arrays that the product of two 16-bit matrices takes at once, beside its result."""
    packed = working_bytes(rows, steps, columns) if dtype == BFLOAT16 else None
    if packed is not None:
        return packed
    if rows < steps:
        some = min(_steps(rows, columns), steps)
        return 4 * (2 * rows * columns + some * (rows + columns))
    return 4 * (steps * columns + min(_steps(steps, columns), rows) * (steps + columns))
