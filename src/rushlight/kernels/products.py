"""Products of 16-bit matrices: bfloat16 by instructions for them (AMX, AVX512-BF16), float16 in float32 registers, others through float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from rushlight.kernels.dispatch import Array, _converter, contiguous, is_half, rounded, widened
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import (
    exports_of_bfloat16,
    exports_of_float16,
    exports_of_halves,
    exports_of_tiles,
)

exports_of_halves(
    # narrow_products.cpp: the factor of few rows, that of many, row or None, result; which are turned, whether the
    # result is; batch, few, many, K; returns whether it was done
    product_of_few="aaaaiiinnnn>n",
    # both factors, result, which are turned; batch, M, N, K; returns the same
    product_of_short="aaaiinnnn>n",
)
# product.cpp, tiles.cpp, product_halves.cpp: factors, row, what is added, result, panels, how many; which are turned;
# batch, M, K, N; alpha and beta
PRODUCTS = dict.fromkeys(("product", "product_wide"), "aaaaaanii" + "nnnn" + "dd")  # the second to float32
exports_of_bfloat16(**PRODUCTS)
exports_of_float16(**PRODUCTS)
exports_of_tiles(leave=">n")  # 0 where it is given

BFLOAT16, FLOAT16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
_SHARED = 1 << 18  # multiplications from which on threads share one packed factor
_WIDEST = 1 << 26  # elements between the rows of a factor


class Convolutions(NamedTuple):
    """Kernels of convolutions (see signatures.py)."""

    conv: Callable[..., None]
    conv_input: Callable[..., None]
    conv_weight: Callable[..., int]
    room: Callable[..., int]


class Way(NamedTuple):
    """Kernels.  name: of the instructions; panel: columns side by side in their packed right factor; unit: steps of the sum, of which they take
    multiples; tall: rows of the left one that are multiplied at once; together: steps in a 32-bit number of a packed factor"""

    name: str
    product: Callable[..., None]
    wide: Callable[..., None]
    attention: Callable[..., None]
    attention_backward: Callable[..., None]
    panel: int
    unit: int
    tall: int
    together: int = 2
    convolutions: Convolutions | None = None


def _find_ways(tables: loader.Tables) -> list[Way]:
    """All that this processor has for bfloat16, the fastest first."""
    found = []
    tiles, dots = tables.get(("bf16", "tiles")), tables.get(("bf16", "products"))
    if tiles is not None and tiles.leave() == 0:
        found.append(
            Way(
                "AMX",
                tiles.product_tiles,
                tiles.product_wide_tiles,
                tiles.attention_tiles,
                tiles.attention_backward_tiles,
                32,
                32,
                128,
                2,
                Convolutions(tiles.conv_tiles, tiles.conv_input_tiles, tiles.conv_weight_tiles, tiles.conv_room_tiles),
            )
        )
    if dots is not None:
        found.append(
            Way(
                "AVX512-BF16",
                dots.product,
                dots.product_wide,
                dots.attention,
                dots.attention_backward,
                48,
                2,
                96,
                2,
                Convolutions(dots.conv, dots.conv_input, dots.conv_weight, dots.conv_room),
            )
        )
    return found


_found: tuple[loader.Tables | None, list[Way]] = (None, [])
_found_of_float16: tuple[loader.Tables | None, Way | None] = (None, None)


def ways() -> list[Way]:
    """The kernels of this processor for bfloat16, the fastest first; none where NumPy has to do it.  Looked for when first asked."""
    global _found
    tables = loader._tables
    if tables is None:
        tables = loader.tables()
    if _found[0] is not tables:
        _found = (tables, _find_ways(tables))
    return _found[1]


def _way(dtype: np.dtype[Any]) -> Way | None:
    """The kernels for a 16-bit dtype; None where NumPy has to do it."""
    global _found_of_float16
    if dtype != FLOAT16:
        return next(iter(ways()), None)
    tables = loader._tables
    if tables is None:
        tables = loader.tables()
    if _found_of_float16[0] is not tables:
        table = tables.get(("f16", "products"))
        found = (
            None
            if table is None
            else Way("AVX512F", table.product, table.product_wide, _refused, _refused, 48, 1, 96, 1)
        )
        _found_of_float16 = (tables, found)
    return _found_of_float16[1]


def _refused(*arguments: object) -> None:
    raise NotImplementedError("attention of float16 goes through float32")


_LINE = 16  # 32-bit numbers of a cache line, where the packed factor begins
_ROOM = 1 << 21  # 32-bit numbers of a packed factor of float16, which is twice as large as the factor, at a time


def _panels(way: Way, steps: int, columns: int) -> int:
    """Panels of the right factor (steps, columns) that are packed at a time."""
    panels = -(-columns // way.panel)
    return panels if way.together == 2 else min(panels, max(_ROOM // (way.panel * steps), 8))


def _packed_numbers(way: Way, steps: int, columns: int) -> int:
    """32-bit numbers of the right factor (steps, columns), or of the panels of it that are packed at a time."""
    return _LINE + _panels(way, steps, columns) * way.panel * -(-steps // way.unit) * way.unit // way.together


def working_bytes(dtype: np.dtype[Any], rows: int, steps: int, columns: int) -> int | None:
    """Bytes that a product takes while it runs, beside its result; None where there is none for a dtype."""
    way = _way(dtype)
    if way is None:
        return None
    return 4 * _packed_numbers(way, steps, columns) if _shares(way, 1, rows, rows * steps * columns) else 0


def _shares(way: Way, batch: int, rows: int, work: int) -> bool:
    """Whether threads share one packed right factor: each packs what it multiplies of one for few rows, and where there are many products."""
    return rows > way.tall and work >= _SHARED and (batch < 8 or work > _SHARED << 6)


def _laid(x: Array) -> tuple[Array, bool]:
    """A batch of matrices (B, R, C) as unsigned numbers whose rows have no gaps, or their transposes and True."""
    if x.flags.aligned:
        rows, columns = x.strides[1:]
        alone = x.shape[2] == 1 and rows != 2  # a column whose numbers have gaps between them
        if ((columns == 2 and x.shape[2] != 1) or alone) and rows % 2 == 0 and abs(rows) < 2 * _WIDEST:
            return x.view(np.uint16), False
        if (rows == 2 or x.shape[1] == 1) and columns % 2 == 0 and abs(columns) < 2 * _WIDEST:
            return x.swapaxes(1, 2).view(np.uint16), True
    return x.copy(order="C").view(np.uint16), False


def product(
    a: Array, b: Array, row: Array | None = None, more: Array | None = None, alpha: float = 1, beta: float = 1
) -> Array | None:
    """a @ b, sums in float32, with `row` (N) added before the one rounding; None where NumPy has to do it.

    a: (*, M, K), b: (*, K, N) -> (*, M, N), of bfloat16 or float16; subnormal factors of bfloat16 may count as 0.
    With `more` (*, M, N) instead of a row, alpha * a @ b + beta * more, rounded once.
    """
    dtype = a.dtype
    if a.ndim < 2 or b.ndim < 2 or b.dtype != dtype or not is_half(dtype):
        return None
    (rows, steps), columns = a.shape[-2:], b.shape[-1]
    lead = a.shape[:-2]
    if lead != b.shape[:-2]:
        lead = np.broadcast_shapes(lead, b.shape[:-2])
    batch = math.prod(lead)
    if (
        0 in (batch, rows, steps, columns)
        or b.shape[-2] != steps
        or not (row is None or (row.dtype == dtype and row.shape == (columns,)))
        or not (more is None or (more.dtype == dtype and more.shape == (*lead, rows, columns)))
    ):
        return None
    whole = b.ndim == 2 and a.flags.c_contiguous  # one right factor for all: one product of more rows
    batch, rows = (1, batch * rows) if whole else (batch, rows)
    left, right = (a.reshape(1, rows, steps), b[None]) if whole else (_batched(a, lead), _batched(b, lead))
    out = np.empty((*lead, a.shape[-2], columns), dtype)
    bias = None if row is None else contiguous(row).view(np.uint16)
    factors, sizes = (*_laid(left), *_laid(right)), (batch, rows, steps, columns)
    if more is None and _of_few(dtype, factors, bias, out.view(np.uint16), sizes):
        return out
    way = _way(dtype)
    if way is None:
        return None
    _run(way, factors, bias, None if more is None else contiguous(more).view(np.uint16), out, sizes, (alpha, beta))
    return out


def _run(way: Way, factors: Any, row: Array | None, more: Array | None, out: Array, sizes: Any, by: Any) -> None:
    """A product by kernels of this processor."""
    left, turned, right, right_turned = factors
    batch, rows, steps, columns = sizes
    shared = _shares(way, batch, rows, rows * steps * columns)
    some = _panels(way, steps, columns) if shared else 0
    packed = np.empty(_packed_numbers(way, steps, columns), np.uint32) if shared else None
    to = out if out.itemsize == 4 else out.view(np.uint16)
    way.product(left, right, row, more, to, packed, some, turned, right_turned, *sizes, *by)


def wide_product(a: Array, b: Array) -> Array:
    """a @ b in float32, of 16-bit matrices (M, K), (K, N)."""
    (rows, steps), columns = a.shape, b.shape[1]
    way = _way(a.dtype) if rows and steps and columns else None
    if way is None:
        return np.asarray(widened(a) @ widened(b))
    out = np.empty((rows, columns), np.float32)
    _run(
        way._replace(product=way.wide),
        (*_laid(a[None]), *_laid(b[None])),
        None,
        None,
        out,
        (1, rows, steps, columns),
        (1, 0),
    )
    return out


_FEW = 8  # rows or columns up to which the other factor is read as it lies
_FEW_DOTS = 4  # the same where memory runs along the sum
_SHORT = 4  # steps of the sum up to which there is little but writing


def _of_few(dtype: np.dtype[Any], factors: Any, row: Array | None, out: Array, sizes: Any) -> bool:
    """The product where one factor has few rows, or columns; whether there were few."""
    left, turned, right, right_turned = factors
    batch, rows, steps, columns = sizes
    table = _converter(dtype)
    if table is None:
        return False
    if rows <= (_FEW_DOTS if right_turned else _FEW):
        across, given = False, (left, right, row, out, turned, not right_turned)
    elif columns <= (_FEW if turned else _FEW_DOTS):
        across, given = True, (right, left, row, out, not right_turned, turned)
        rows, columns = columns, rows
    elif steps <= _SHORT and row is None and dtype == FLOAT16:  # bfloat16 is rounded by instructions for it
        return bool(table.product_of_short(left, right, out, turned, right_turned, batch, rows, columns, steps))
    else:
        return False
    return bool(table.product_of_few(*given, across, batch, rows, columns, steps))


def _batched(x: Array, lead: tuple[int, ...]) -> Array:
    """x (*, R, C) for each of the batch: (B, R, C), without a copy where strides allow it."""
    if x.ndim == 3 and x.shape[:1] == lead:
        return x
    return np.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(-1, *x.shape[-2:])


_BLOCK = 1 << 18  # numbers whose float32 copies are made at once, of 16-bit factors


def of_halves(a: Array, b: Array, out: Any, row: Array | None) -> Any:
    """The product of 16-bit factors: sums in float32, rounded once."""
    vectors = a.ndim == 1, b.ndim == 1
    if _is_tiny(a, b):
        return _through_float32(a, b, out, row)
    found = product(a[None] if vectors[0] else a, b[:, None] if vectors[1] else b, row)
    if found is None:
        return _through_float32(a, b, out, row)
    if vectors[1]:
        found = found[..., 0]
    if vectors[0]:
        found = found[..., 0] if vectors[1] else found[..., 0, :]
    if out is None:
        return found
    out[...] = found
    return out


_TINY = 1 << 9  # multiplications of a product up to which float32 copies and NumPy take less than a kernel


def _is_tiny(a: Array, b: Array) -> bool:
    return a.ndim > 1 < b.ndim and a.shape[-2] * a.shape[-1] * b.shape[-1] <= _TINY and a.size + b.size <= _BLOCK


def _through_float32(a: Array, b: Array, out: Any, row: Array | None) -> Any:
    """The product of 16-bit factors, without float32 copies of all of them."""
    if a.ndim == b.ndim == 2 and a.size + b.size <= _BLOCK >> 4:
        wide = np.asarray(widened(a) @ widened(b))
        found = rounded(wide if row is None else wide + widened(row), a.dtype)
    elif a.ndim == b.ndim == 2:
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
    packed = working_bytes(dtype, rows, steps, columns)
    if packed is not None:
        return packed
    if rows < steps:
        some = min(_steps(rows, columns), steps)
        return 4 * (2 * rows * columns + some * (rows + columns))
    return 4 * (steps * columns + min(_steps(steps, columns), rows) * (steps + columns))
