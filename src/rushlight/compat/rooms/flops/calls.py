"""What a call of an operator, and its backward, is to a counter of operations: PyTorch's names with their arguments.

Each function gives calls as (name, arguments, shape of the result), tensors among the arguments being their shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rushlight.compat.rooms.flops.formulas import get_shape
from rushlight.dispatch.declare import Array, Op
from rushlight.ops.python.handing import SHOWN, prepare
from rushlight.tensor import Tensor

__all__ = ["Call", "backward", "forward"]

Call = tuple[str, tuple[Any, ...], Any]
Shape = tuple[int, ...]
SUMMED = {"addmm": "mm", "baddbmm": "bmm"}  # with something added to the product: the products of their backward


def forward(op: Op, inputs: Sequence[Any], statics: Sequence[Any], result: Tensor | Array | tuple[Any, ...]) -> Call:
    """The call that PyTorch's counter would see of an operator that is counted."""
    shapes: list[Any] = [None if x is None else tuple(x.shape) for x in inputs]
    rule = RULES.get(op.name)
    return _told(op, inputs, statics, _shape(result)) if rule is None else rule(shapes, statics, _shape(result))


def backward(op: Op, call: Call, needs: Sequence[bool]) -> list[Call]:
    """The calls of its backward.  needs: for each tensor of the operator, whether its gradient is wanted."""
    name, args, out = call
    if name.startswith("_scaled"):
        return [(f"{name}_backward", (out, *args), None)]
    if op.name not in RULES:
        return [_backward_of_windows(f"{name}_backward", args, out, needs)]
    a, b = args[-2:]
    by_a, by_b = needs[1:3] if op.name == "addmm" else needs[:2]
    product = SUMMED.get(name, name)
    return [(product, (out, _turned(b)), a)] * by_a + [(product, (_turned(a), out), b)] * by_b


def _shape(result: Tensor | Array | tuple[Any, ...]) -> Shape:
    made = result[0] if isinstance(result, tuple | list) else result
    return tuple(get_shape(made))


def _told(op: Op, inputs: Sequence[Any], statics: Sequence[Any], out: Shape) -> Call:
    """The call as handlers of `__torch_dispatch__` see it."""
    prepare()
    told = SHOWN[op.name](op, tuple(inputs), tuple(statics))
    assert told is not None
    return told[0], tuple(_shape(x) if hasattr(x, "shape") else x for x in told[1]), out


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


def _folded(shape: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    return (math.prod(batch), *shape[-2:])


def _mm(shapes: Sequence[Shape], statics: Sequence[Any], out: Shape) -> Call:
    return "mm", (shapes[0], shapes[1]), out


def _bmm(shapes: Sequence[Shape], statics: Sequence[Any], out: Shape) -> Call:
    batch = out[:-2]
    return "bmm", tuple(_folded(s, batch) for s in shapes[:2]), _folded(out, batch)


def _linear(shapes: Sequence[Shape], statics: Sequence[Any], out: Shape) -> Call:
    """One product of rows, to which a row may be added."""
    x, w, bias = shapes
    rows = math.prod(x[:-1])
    factors = (rows, x[-1]), _turned(w)
    return ("mm" if bias is None else "addmm"), factors if bias is None else (bias, *factors), (rows, w[0])


def _addmm(shapes: Sequence[Shape], statics: Sequence[Any], out: Shape) -> Call:
    if len(out) == 2:
        return "addmm", tuple(shapes), out
    return "baddbmm", (shapes[0], *(_folded(s, out[:-2]) for s in shapes[1:])), _folded(out, out[:-2])


def _einsum(shapes: Sequence[Shape], statics: Sequence[Any], out: Shape) -> Call:
    """A batch of products: of the labels that all have, those that one has, and those that are summed."""
    a, b, (la, lb, lo) = shapes[0], shapes[1], statics
    sizes: dict[Any, int] = {}
    for label, n in (*zip(la, a, strict=True), *zip(lb, b, strict=True)):
        sizes[label] = max(n, sizes.get(label, n))

    def many(labels: Iterable[int]) -> int:
        return math.prod(sizes[label] for label in labels)

    batch = many(n for n in lo if n in la and n in lb)
    rows, columns = many(n for n in lo if n not in lb), many(n for n in lo if n not in la)
    summed = many(n for n in la if n not in lo)
    return "bmm", ((batch, rows, summed), (batch, summed, columns)), (batch, rows, columns)


def _backward_of_windows(name: str, args: tuple[Any, ...], out: Shape, needs: Sequence[bool]) -> Call:
    x, w, bias, *how = args
    mask = [*needs, False][:3]
    return name, (out, x, w, bias, *how, mask), (x, w, bias)


def _attention(shapes: Sequence[Shape], statics: Sequence[Any], out: Shape) -> Call:
    """Of four dimensions, as PyTorch's kernels see it, each key for the heads that share it."""
    query, *others = ((*(1,) * (4 - len(s)), *s) for s in shapes[:3])
    rest = (math.prod(query[:-3]), query[-3])
    return "_scaled_dot_product_flash_attention", tuple((*rest, *s[-2:]) for s in (query, *others)), (*rest, *out[-2:])


RULES = {
    "mm": _mm, "bmm": _bmm, "linear": _linear, "addmm": _addmm, "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
}  # fmt: skip
