"""How many floating-point operations products, convolutions and attention take, by shapes; as `FlopCounterMode` counts them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["addmm_flop", "baddbmm_flop", "bmm_flop", "conv_backward_flop", "conv_flop", "conv_flop_count",
           "convert_num_with_suffix", "convert_to_percent_str", "get_shape", "get_suffix_str", "mm_flop",
           "normalize_tuple", "sdpa_backward_flop", "sdpa_backward_flop_count", "sdpa_flop", "sdpa_flop_count",
           "table"]  # fmt: skip

Shape = Sequence[int]
suffixes = ["", "K", "M", "B", "T"]


def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Shape | None = None, **kwargs: object) -> int:
    """Of a batch of products.  (b, m, k), (b, k, n).  Raises AssertionError for shapes that do not fit."""
    (batch, m, k), (other, inner, n) = a_shape, b_shape
    if batch != other:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {batch} and {other}")
    if k != inner:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {k} and {inner}")
    return batch * m * n * 2 * k


def mm_flop(a_shape: Shape, b_shape: Shape, *args: object, out_shape: Shape | None = None, **kwargs: object) -> int:
    """Of a product.  (m, k), (k, n).  Raises AssertionError for shapes that do not fit."""
    if a_shape[1] != b_shape[0]:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {a_shape[1]} and {b_shape[0]}")
    return bmm_flop((1, *a_shape), (1, *b_shape))


def addmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Shape | None = None, **kwargs: object
) -> int:
    """Of a product that is added to something: as of the product."""
    return mm_flop(a_shape, b_shape)


def baddbmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Shape | None = None, **kwargs: object
) -> int:
    """Of a batch of products that is added to something: as of the products."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Of a convolution.  (n, c, *), (out, c / groups, *), (n, out, *)."""
    places = (x_shape if transposed else out_shape)[2:]
    return math.prod(places) * math.prod(w_shape[2:]) * x_shape[0] * w_shape[0] * w_shape[1] * 2


def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: object,
    _stride: object,
    _padding: object,
    _dilation: object,
    transposed: bool,
    *args: object,
    out_shape: Shape = (),
    **kwargs: object,
) -> int:
    """As `conv_flop_count`, of the arguments of `aten.convolution`."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: object,
    _stride: object,
    _padding: object,
    _dilation: object,
    transposed: bool,
    _output_padding: object,
    _groups: object,
    output_mask: Sequence[bool],
    out_shape: Sequence[Shape],
    **kwargs: object,
) -> int:
    """Of the gradients of a convolution by its input and its weight, as far as `output_mask` wants them.

    Groups are not looked at in that by the weight, which so counts all pairs of channels, as in PyTorch's counter.
    """
    found = 0
    if output_mask[0]:
        found += conv_flop_count(grad_out_shape, w_shape, get_shape(out_shape[0]), not transposed)
    if output_mask[1]:
        moved, kernel = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        found += conv_flop_count(_swapped(moved), _swapped(kernel), _swapped(get_shape(out_shape[1])))
    return found


def _swapped(shape: Shape) -> Shape:
    return [shape[1], shape[0], *shape[2:]]


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Of attention.  (b, h, length, features) each."""
    b, h, s, d = query_shape
    t, features = key_shape[2], value_shape[3]
    return bmm_flop((b * h, s, d), (b * h, d, t)) + bmm_flop((b * h, s, t), (b * h, t, features))


def sdpa_flop(
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: object,
    out_shape: Shape | None = None,
    **kwargs: object,
) -> int:
    """As `sdpa_flop_count`."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Of the backward of attention, which computes the scores again: five products."""
    b, h, s, d = query_shape
    t, features = key_shape[2], value_shape[3]
    scores, values = bmm_flop((b * h, s, d), (b * h, d, t)), bmm_flop((b * h, s, features), (b * h, features, t))
    return 3 * scores + 2 * values


def sdpa_backward_flop(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: object,
                       out_shape: Shape | None = None, **kwargs: object) -> int:  # fmt: skip
    """As `sdpa_backward_flop_count`."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


def get_shape(i: object) -> Any:
    """The shape of a tensor; anything else as it is."""
    return getattr(i, "shape", i)


def normalize_tuple(x: object) -> tuple[Any, ...]:
    """A tuple of one, or the tuple."""
    return x if isinstance(x, tuple) else (x,)


def get_suffix_str(number: int) -> str:
    """The unit that a number is told in, with two to four digits before it."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in a unit, with three decimals."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A part of a whole in percent; "0%" of nothing."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Modules, their operations and parts in columns."""
    head = "Module", "FLOP", "% Total"
    widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    widths = [max(width, len(title) + 2) for width, title in zip(widths, head, strict=True)]
    lines = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join(f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in lines)
