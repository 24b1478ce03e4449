"""``torch._higher_order_ops.out_dtype``: operators whose operands are first made of the dtype of the result."""

from __future__ import annotations

from typing import Any

from rushlight._C._higher_order import HigherOrderOperator
from rushlight.compat.rooms._prims_common.promotion import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from rushlight.library import namespaces
from rushlight.tensor import Tensor
from rushlight.utils import _pytree

__all__ = ["OutDtypeOperator", "out_dtype"]

ALLOWED = (
    "linear.default",
    "mm.default",
    "conv2d.default",
    "convolution.default",
    "mul.Tensor",
    "mul.Scalar",
    "div.Tensor",
    "div.Scalar",
)


class OutDtypeOperator(HigherOrderOperator):
    """`out_dtype(op, output_dtype, *args)`: what an operator gives for operands of the dtype that theirs and another promote to.

    op: an overload of products and convolutions.  The result is of `output_dtype`.  Raises ValueError for another operator.
    """

    ALLOWABLE_OPS = tuple(f"aten.{name}" for name in ALLOWED)

    def __init__(self) -> None:
        super().__init__("out_dtype")

    def __call__(self, op: Any, output_dtype: Any, /, *args: Any) -> Any:
        check(op)
        return computed(op, output_dtype, *args)


def check(op: Any) -> None:
    """Raise ValueError unless `op` is one of those that are taken."""
    if not hasattr(op, "_overloadname"):
        raise ValueError("out_dtype's first argument must be an OpOverload")
    name = f"{op._opname}.{op._overloadname}"
    if op._opname.endswith("_"):
        raise ValueError("out_dtype's first argument needs to be a functional operator")
    if name not in ALLOWED or op is not getattr(getattr(namespaces.aten, op._opname), op._overloadname):
        raise ValueError(f"out_dtype only allows the following operators: {list(OutDtypeOperator.ALLOWABLE_OPS)}.")


def computed(op: Any, output_dtype: Any, *args: Any) -> Any:
    """What the operator gives for operands of the common dtype, in `output_dtype`."""
    tensors = [x for x in _pytree.tree_flatten(args)[0] if isinstance(x, Tensor)]
    like = tensors[0].new_ones(1, dtype=output_dtype)
    wide, _ = elementwise_dtypes(*tensors, like, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH)
    cast = _pytree.tree_map(lambda x: x.to(wide) if isinstance(x, Tensor) else x, args)
    return op(*cast).to(output_dtype)


out_dtype = OutDtypeOperator()
