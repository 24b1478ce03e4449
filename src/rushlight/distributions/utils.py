"""What distributions share: common shapes of parameters, probabilities and logits, attributes computed when asked for."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, overload

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype, finfo, get_default_dtype
from rushlight.basics.size import Size
from rushlight.dispatch.named import Named, named
from rushlight.engine.modes import enable_grad
from rushlight.tensor import Tensor

__all__ = ["broadcast_all", "clamp_probs", "eps_of", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
           "standard_normal", "sum_rightmost", "tiny_of", "tril_matrix_to_vec", "vec_to_tril_matrix"]  # fmt: skip

functional = Named("nn.functional")
special = Named("special")
euler_constant = 0.57721566490153286060  # Euler-Mascheroni


def broadcast_all(*values: object) -> tuple[Any, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype and device of the first tensor.

    Raises ValueError for anything else.
    """
    if not all(isinstance(v, Tensor | Number) for v in values):
        raise ValueError("Input arguments must all be instances of Number or torch.Tensor, got: "
                         + ", ".join(type(v).__name__ for v in values))  # fmt: skip
    first = next((v for v in values if isinstance(v, Tensor)), None)
    options: dict[str, Any] = {"dtype": get_default_dtype()}
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    tensors = [v if isinstance(v, Tensor) else named.tensor(v, **options) for v in values]
    return tuple(named.broadcast_tensors(*tensors))


def standard_normal(shape: Size, like: Tensor) -> Tensor:
    """Standard normal numbers in the dtype and on the device of `like`.  -> (*shape)"""
    return named.randn(shape, dtype=like.dtype, device=like.device)


def sum_rightmost(value: Tensor, dim: int) -> Any:
    """The sum over the `dim` dimensions on the right.  (*batch, *event) -> (*batch)"""
    return value if dim == 0 else value.flatten(value.dim() - dim).sum(-1)


def _standard_normal(shape: Size, dtype: dtype, device: device) -> Tensor:
    """Standard normal numbers; the name by which libraries of distributions import it.  -> (*shape)"""
    return named.randn(tuple(shape), dtype=dtype, device=device)


_sum_rightmost = sum_rightmost  # the name by which libraries of distributions import it


def eps_of(x: Tensor) -> float:
    """The distance of 1 to the next number in the dtype of `x`."""
    return float(finfo(x.dtype).eps)


def tiny_of(x: Tensor) -> float:
    """The smallest normal number in the dtype of `x`."""
    return float(finfo(x.dtype).tiny)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities: the sigmoid of each of them if binary, else the softmax over the last dimension.  (*) -> (*)"""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept apart from 0 and 1 by the dtype's eps, so that their logarithms are finite.  (*) -> (*)"""
    eps = eps_of(probs)
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of each of them if binary, else logarithms.  (*) -> (*)"""
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()


class lazy_property:
    """A property that is computed once, with gradients even inside no_grad, and then is an ordinary attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped, self.__doc__, self.name = wrapped, wrapped.__doc__, wrapped.__name__

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Tensor: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Tensor: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = instance.__dict__[self.name] = self.wrapped(instance)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal, row by row.  (*, N, N) -> (*, count)

    Raises ValueError for a diagonal outside of the matrix.
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = named.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, with zeros elsewhere.  (*, count) -> (*, N, N)

    Raises ValueError where no matrix has as many elements there.
    """
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps or int(n) != n:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as the lower triangular part "
                         "of a square D x D matrix.")  # fmt: skip
    rows, columns = named.tril_indices(int(n), int(n), diag)
    matrix = vec.new_zeros((*vec.shape[:-1], int(n), int(n)))
    matrix[..., rows, columns] = vec
    return matrix
