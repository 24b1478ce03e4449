"""torch.masked: reductions and normalisations that leave out elements.

mask: bool, True where an element counts; it broadcasts to the input. What is left out is replaced by the element that
changes nothing: zero in sums, one in products, -inf in maxima. Gradients of elements left out are zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.dims import wrap_dims
from rushlight.dispatch.named import linalg, named
from rushlight.tensor import Tensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
           "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]  # fmt: skip
REDUCE_NAMES = (
    "sum mean amin amax argmin argmax prod all norm var std".split()
)  # what masked tensors have of reductions


def _limits(dtype: Any) -> tuple[Any, Any]:
    """The smallest and the largest value of a dtype."""
    if dtype.is_floating_point:
        return -math.inf, math.inf
    if dtype is dtypes.bool:
        raise NotImplementedError(
            "masked extrema of bool tensors: there is no value that changes nothing; use any or all"
        )
    info = dtypes.iinfo(dtype)
    return info.min, info.max


def _extremes(x: Any, mask: Tensor | None, which: int) -> Tensor:
    """`x` with the smallest (0) or the largest (1) value of its dtype where it is masked out."""
    return x if mask is None else _filled(x, mask, _limits(x.dtype)[which])


def _filled(input: Tensor, mask: Any, value: Any) -> Tensor:
    """`input` with `value` where it is masked out."""
    if mask is None:
        return input
    return named.where(_mask_of(input, mask), input, named.scalar_tensor(value, dtype=input.dtype))


_NEUTRAL = {"sum": 0, "prod": 1, "mean": 0, "cumsum": 0, "cumprod": 1, "norm": 0, "var": 0, "std": 0}


def _combine_input_and_mask(op: object, input: Tensor, mask: Any, *args: object) -> Tensor:
    """`input` with what changes nothing in a reduction where it is masked out.  op: the reduction, a function.

    Raises ValueError for what is no function, or for one that nothing is known of.
    """
    name = getattr(op, "__name__", None)
    if not callable(op) or name is None:
        raise ValueError(f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)")
    if name in ("amax", "argmax", "amin", "argmin"):
        return _extremes(input, mask, int(name.endswith("min")))
    if name not in _NEUTRAL:
        raise ValueError(f"_combine_input_and_mask: no value is known that changes nothing in {name}")
    return _filled(input, mask, _NEUTRAL[name])


def _mask_of(input: Tensor, mask: Tensor) -> Tensor:
    if mask.ndim > input.ndim:
        raise IndexError("the mask may not have more dimensions than the input: got "
                         f"{mask.ndim}, expected at most {input.ndim}")  # fmt: skip
    return mask.expand(input.shape).bool()


def _input_mask(input: Tensor, *args: object, **kwargs: Any) -> Tensor:
    """Which elements of `input` count in a function that is called with these arguments, by its `mask`.  (*), bool

    Raises ValueError where there is no mask.
    """
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return _mask_of(input, mask)


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Which elements of the result of a function of this module count, called with these arguments: those of any that counts.

    Raises ValueError for another function.
    """
    name = getattr(op, "__name__", None)
    if not callable(op) or name not in __all__:
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    mask = _input_mask(input, *args, **kwargs)
    if name in ("cumprod", "cumsum", "log_softmax", "normalize", "softmax", "softmin"):
        return mask
    given = args[1:] if name == "norm" else args
    dims = _dims(input, given[0] if given else kwargs.get("dim"))
    for dim in sorted(dims, reverse=True):
        mask = mask.any(dim, keepdim=bool(kwargs.get("keepdim")))
    return mask


def _as(input: Tensor, dtype: object) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _dims(input: Tensor, dim: object) -> tuple[int, ...]:
    """The dimensions of a reduction: all where `dim` is None or ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(input.ndim))
    return wrap_dims(dim if isinstance(dim, (tuple, list)) else (dim,), input.ndim)


def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Any:
    """Sum over `dim` of the elements where `mask` is True; 0 where there is none.  (*) -> (*)"""
    dtype = _total_dtype(input, dtype)
    x = _filled(_as(input, dtype), mask, 0)
    return x.sum(_dims(x, dim), keepdim, dtype=dtype)


def _total_dtype(input: Any, dtype: object) -> Any:
    if dtype is not None:
        return dtype
    return dtypes.int64 if input.dtype in (dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32) else None


def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Any:
    """Product over `dim` of the elements where `mask` is True; 1 where there is none.  (*) -> (*)"""
    dtype = _total_dtype(input, dtype)
    x: Any = _filled(_as(input, dtype), mask, 1)
    dims = _dims(x, dim)
    for d in sorted(dims, reverse=True):
        x = x.prod(d, keepdim)
    return x


def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Any:
    """Mean over `dim` of the elements where `mask` is True; NaN where there is none.  (*) -> (*)"""
    for d, what in ((dtype, "Optional"), (input.dtype if dtype is None else None, "Input")):
        if d is not None and d.category < dtypes.FLOAT:
            raise ValueError("mean(): Could not infer output dtype. "
                             f"{what} dtype must be either a floating point or complex dtype. Got: {d}")  # fmt: skip
    x: Any = _as(input, dtype)
    dims = _dims(x, dim)
    if mask is None:
        return x.mean(dims, keepdim)
    return _filled(x, mask, 0).sum(dims, keepdim) / _count(x, dims, keepdim, mask)


def _count(x: Any, dims: Any, keepdim: bool, mask: Any) -> Tensor:
    """How many elements count, in the dtype of the result."""
    real = x.dtype.to_real() if x.dtype.category >= dtypes.FLOAT else dtypes.int64
    return _mask_of(x, mask).to(real).sum(dims, keepdim)


def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Largest element over `dim` where `mask` is True; the dtype's smallest value where there is none.  (*) -> (*)"""
    x: Any = _as(input, dtype)
    return _extremes(x, mask, 0).amax(_dims(x, dim), keepdim)


def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Smallest element over `dim` where `mask` is True; the dtype's largest value where there is none.  (*) -> (*)"""
    x: Any = _as(input, dtype)
    return _extremes(x, mask, 1).amin(_dims(x, dim), keepdim)


def argmax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Index of the largest element where `mask` is True, as PyTorch in the dtype of the input.  (*) -> (*)"""
    x: Any = _as(input, dtype)
    return _extremes(x, mask, 0).argmax(dim, keepdim).to(x.dtype)


def argmin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Index of the smallest element where `mask` is True, as PyTorch in the dtype of the input.  (*) -> (*)"""
    x: Any = _as(input, dtype)
    return _extremes(x, mask, 1).argmin(dim, keepdim).to(x.dtype)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Lower median along `dim` of the elements where `mask` is True and that are not NaN; NaN where there is none.

    Raises ValueError for integers of which a row is left out whole.  (*) -> (*)
    """
    x: Any = _as(input, dtype)
    if mask is None:
        return x.nanmedian(dim, keepdim).values
    if not x.dtype.is_floating_point:
        if not bool(_mask_of(x, mask).any(dim).all()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        found = _filled(x.double(), mask, math.nan).nanmedian(dim, keepdim).values
        return found.to(x.dtype)
    return _filled(x, mask, math.nan).nanmedian(dim, keepdim).values


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Vector norm of order `ord` over `dim` of the elements where `mask` is True.  (*) -> (*)"""
    x = _as(input, dtype)
    order = 2.0 if ord is None else ord
    neutral = math.inf if order < 0 else 0
    return linalg.vector_norm(_filled(x, mask, neutral), order, _dims(x, dim), keepdim)


def _variance(input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: object, mask: Any) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    by = correction if correction is not None else 1 if unbiased is None or unbiased else 0
    if dtype is None and input.dtype.category < dtypes.FLOAT:
        dtype = dtypes.get_default_dtype()
    x: Any = _as(input, dtype)
    dims = _dims(x, dim)
    if mask is None and not x.dtype.is_complex:
        return x.var(dims, correction=by, keepdim=keepdim)
    many = _count(x, dims, True, named.ones_like(x.real, dtype=dtypes.bool) if mask is None else mask)
    off = x - _filled(x, mask, 0).sum(dims, True) / many
    found: Any = _filled(off * off.conj(), mask, 0).sum(dims, keepdim)
    if not keepdim:
        many = many.reshape(found.shape)
    return found / (named.maximum(many - by, named.zeros_like(many)) if by else many)


def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Variance over `dim` of the elements where `mask` is True.  (*) -> (*)"""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Standard deviation over `dim` of the elements where `mask` is True.  (*) -> (*)"""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(input))) over `dim` where `mask` is True; -inf where there is none.  (*) -> (*)"""
    dtype = dtype or input.dtype
    x = _as(input, dtype)
    low = -math.inf if x.dtype.category >= dtypes.FLOAT else _limits(x.dtype)[0]
    return named.logsumexp(_filled(x, mask, low), _dims(x, dim), keepdim).to(dtype)


def logaddexp(input: Any, other: Any, *, dtype: object = None, input_mask: object = None,
              other_mask: object = None) -> Tensor:  # fmt: skip
    """log(exp(input) + exp(other)), each where its mask is True.  (*), (*) -> (*)"""
    a, b = _as(input, dtype), _as(other, dtype)
    return named.logaddexp(_filled(a, input_mask, -math.inf), _filled(b, other_mask, -math.inf))


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax along `dim` of the elements where `mask` is True; 0 elsewhere, NaN where there is none.  (*) -> (*)"""
    return named.softmax(_filled(_as(input, dtype), mask, -math.inf), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Logarithm of `softmax`.  (*) -> (*)"""
    return named.log_softmax(_filled(_as(input, dtype), mask, -math.inf), dim)


def softmin(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of -input along `dim` of the elements where `mask` is True.  (*) -> (*)"""
    return named.softmax(-_filled(_as(input, dtype), mask, math.inf), dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """input / max(norm, eps) along `dim`, of the elements where `mask` is True; 0 elsewhere.  (*) -> (*)"""
    x = _as(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled(x, mask, 0) / named.maximum(size, named.scalar_tensor(eps, dtype=size.dtype))


def cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums along `dim` of the elements where `mask` is True.  (*) -> (*)"""
    x = _as(input, dtype)
    return named.cumsum(_filled(x, mask, 0), dim).to(x.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products along `dim` of the elements where `mask` is True.  (*) -> (*)"""
    x = _as(input, dtype)
    return named.cumprod(_filled(x, mask, 1), dim).to(x.dtype)
