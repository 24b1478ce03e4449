"""What layers compute of each position: products with matrices, norms, softmax, embeddings."""

from __future__ import annotations

from typing import Any

from rushlight.basics.dtypes import dtype
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.named import Named
from rushlight.dispatch.named import named as torch
from rushlight.nested.elementwise import described
from rushlight.nested.tensor import Nested, NestedTensor, answers
from rushlight.tensor import Tensor

F: Any = Named("nn.functional")
_op = answers


def along(name: str, nt: NestedTensor, dim: int) -> int:
    """A dimension of the values along which positions are taken together.  Raises RuntimeError for that of components."""
    found = wrap_dim(dim, nt.dim())
    if found == 0:
        raise RuntimeError(f"{name}: expected a dimension of each component of {described(nt)}, got dim={dim}")
    return found - 1


def last(name: str, nt: NestedTensor, count: int = 1) -> None:
    """Raise RuntimeError unless the last dimensions are those of each position."""
    if nt.dim() - count <= nt._ragged_idx:
        raise RuntimeError(
            f"{name}: expected {count} dimensions behind the ragged one, {nt._ragged_idx}, of {described(nt)}"
        )


@_op(NestedTensor)
def linear(input: NestedTensor, weight: Tensor, bias: Tensor | None = None) -> NestedTensor:
    """The product of each position with a matrix, plus a bias."""
    last("linear", input)
    return input._with(F.linear(input._values, weight, bias))


@_op(NestedTensor)
def softmax(
    input: NestedTensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> NestedTensor:
    """Softmax along a dimension; along the ragged one, of each component."""
    d = along("softmax", input, -1 if dim is None else dim)
    if d + 1 != input._ragged_idx:
        return input._with(torch.softmax(input._values, d, dtype=dtype))
    whole: Any = input if input._places.whole else input.contiguous()
    return whole._with(torch.cat([torch.softmax(x, d, dtype=dtype) for x in whole.unbind()], d))


@_op(NestedTensor)
def log_softmax(
    input: NestedTensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> NestedTensor:
    """The logarithm of softmax along a dimension that is not ragged."""
    d = along("log_softmax", input, -1 if dim is None else dim)
    if d + 1 == input._ragged_idx:
        raise RuntimeError(
            f"log_softmax: expected another dimension than the ragged one of {described(input)}, got dim={dim}"
        )
    return input._with(torch.log_softmax(input._values, d, dtype=dtype))


@_op(NestedTensor)
def embedding(input: NestedTensor, weight: Tensor, *args: object, **kwargs: object) -> NestedTensor:
    """The row of a matrix for each index."""
    return input._with(F.embedding(input._values, weight, *args, **kwargs))


@_op(NestedTensor)
def one_hot(input: NestedTensor, num_classes: int = -1) -> NestedTensor:
    """Zeros, and a one in the place that each index names."""
    return input._with(F.one_hot(input._values, num_classes))


@_op(NestedTensor, "matmul", "bmm", "__matmul__", "mm")
def matmul(input: Any, other: Any) -> Tensor:
    """The product with a matrix, with one for each component, or of two nested tensors over the dimension in which both are ragged.

    Raises RuntimeError for others.
    """
    nested = isinstance(input, NestedTensor), isinstance(other, NestedTensor)
    if nested == (True, False) and input._ragged_idx < input.dim() - 1:
        if other.ndim == 2 or (
            other.ndim > 2 and input.dim() > 3 and other.ndim < input.dim() and input._ragged_idx < input.dim() - 2
        ):
            return input._with(input._values.matmul(other))
        if other.ndim == input.dim() and other.shape[0] == len(input) and input._places.whole:
            parts = [x.matmul(y) for x, y in zip(input.unbind(), other, strict=True)]
            return input._with(torch.cat(parts, input._ragged_idx - 1))
    if nested == (True, True) and input._places.symbol == other._places.symbol and input.dim() == other.dim():
        if input._ragged_idx == input.dim() - 1 and other._ragged_idx == input.dim() - 2:
            return torch.stack([x.matmul(y) for x, y in zip(input.unbind(), other.unbind(), strict=True)])
    shapes = ", ".join(described(x) if isinstance(x, Nested) else str(tuple(x.shape)) for x in (input, other))
    raise RuntimeError(
        f"matmul: expected a nested tensor and a matrix, or a matrix for each component, or two that are ragged in the "
        f"dimension that is summed over, got {shapes}"
    )
