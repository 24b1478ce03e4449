"""Floating-point operations of an operator, estimated from the shapes of its inputs: a multiplication and an addition
are two."""

from __future__ import annotations

import math
from typing import Any


def _product(shapes: Any) -> int | None:
    """Of matrices, or batches of them: (..., m, k) with (..., k, n); a vector counts as a matrix of one row or column."""
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return None
    a, b = shapes[0], shapes[1]
    columns = b[-1] if len(b) > 1 else 1
    batch = math.prod(a[:-1]) if len(b) <= 2 else math.prod(b[:-2]) * (a[-2] if len(a) > 1 else 1)
    return int(2 * batch * a[-1] * columns)


def _added_product(shapes: Any) -> int | None:
    return _product(shapes[1:])


def _linear(shapes: Any) -> int | None:
    """(..., k) with a weight (n, k)."""
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return None
    return int(2 * math.prod(shapes[0]) * (shapes[1][0] if len(shapes[1]) > 1 else 1))


def _elementwise(shapes: Any) -> int | None:
    return max(math.prod(s) for s in shapes if not s or not isinstance(s[0], list)) if shapes else None


def _convolution(details: Any) -> int | None:
    """Of (n, c, *spatial) with a weight (out, c / groups, *kernel): each element of the result takes a kernel's sum."""
    shapes = details.shapes
    if len(shapes) < 2 or len(shapes[0]) < 3 or len(shapes[1]) != len(shapes[0]) or not details.result:
        return None
    return int(2 * math.prod(details.result) * math.prod(shapes[1][1:]))


PRODUCTS = {"mm": _product, "bmm": _product, "matmul": _product, "mv": _product, "dot": _product,
            "addmm": _added_product, "baddbmm": _added_product, "addmv": _added_product, "addbmm": _added_product,
            "linear": _linear, "mul": _elementwise, "add": _elementwise, "sub": _elementwise}  # fmt: skip


def estimate(name: str, details: Any) -> int | None:
    """The operations of one call of operator `name`, None where that is not known."""
    if details.shapes is None:
        return None
    if name.startswith("conv") or name.endswith("convolution"):
        return _convolution(details)
    count = PRODUCTS.get(name)
    return None if count is None else count(details.shapes)
