"""More products: baddbmm and its family, inner, vdot, tensordot, kron, multi_dot, cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics import caller
from rushlight.basics.dtype_words import in_c
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.compute import check_factors
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names, wrap_dim, wrap_dims
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.engine import inplace
from rushlight.kernels.dispatch import AT_ONCE, is_half, rounded, up
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.old_orders import in_old_order
from rushlight.ops.elementwise.shared import result_type_of
from rushlight.ops.linear.matmul import addmm_op, dot, mm, outer_op
from rushlight.ops.linear.unfit import (
    check_expands,
    check_matrices,
    check_vector,
    of_batches,
    of_three,
    of_vectors,
    same_dtype,
    same_dtypes_of_sum,
    same_dtypes_of_vector,
)
from rushlight.ops.shape.reshape import reshape_op, reshaped
from rushlight.ops.shape.views import permute, unsqueeze
from rushlight.signs import turn
from rushlight.tensor import Tensor


def check_factor(name: str, which: str, value: complex, like: Tensor) -> None:
    """Raise RuntimeError for a factor that does not fit: a fraction of integers, a bool of anything but bools, one too large."""
    if isinstance(value, bool) and raw(like).dtype.kind != "b":
        raise RuntimeError(f"{name}(): Boolean {which} only supported for Boolean results.")
    if isinstance(value, float) and raw(like).dtype.kind in "biu":
        raise RuntimeError(
            f"{name}(): For integral input tensors, argument {which} must not be a floating point number. Got {value}"
        )
    check_factors(name, raw(like).dtype, value)


def add_product(
    run: Callable[..., Any],
    name: str,
    input: Tensor,
    a: Tensor,
    b: Tensor,
    shape: tuple[int, ...],
    beta: Any,
    alpha: Any,
) -> Any:
    """beta * input + alpha * a @ b by the operator of addmm, once `input` is seen to fit."""
    check_expands(name, input, shape)
    if raw(input).dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if run is call.apply_inplace and raw(input).shape != shape:
        raise RuntimeError(
            f"{name}_: input of shape {list(raw(input).shape)} cannot hold the result's shape {list(shape)}"
        )
    return run(addmm_op.op, (input, a, b), (beta, alpha))


def _baddbmm(
    run: Callable[..., Any], input: Tensor, batch1: Tensor, batch2: Tensor, beta: complex, alpha: complex
) -> Tensor:
    check_matrices("baddbmm", batch1, batch2, 3, ("batch1", "batch2"), of_batches)
    same_dtype("baddbmm", input, batch1, ("input", "batch1"), of_three)
    shape = (*raw(batch1).shape[:2], raw(batch2).shape[2])
    return add_product(run, "baddbmm", input, batch1, batch2, shape, beta, alpha)


@function(method=True, out="same", autocast="lower")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *old: Tensor, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """beta * input + alpha * batch1 @ batch2.  (B, M, N), (B, M, K), (B, K, N) -> (B, M, N)"""
    if old:
        return in_old_order(baddbmm, (input, batch1, batch2, *old), {"beta": beta, "alpha": alpha})
    return _baddbmm(call.by_function, input, batch1, batch2, beta, alpha)


@function(method=True)
def baddbmm_(
    input: Tensor, batch1: Tensor, batch2: Tensor, *old: Tensor, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """In-place version of `baddbmm`."""
    if old:
        return in_old_order(baddbmm_, (input, batch1, batch2, *old), {"beta": beta, "alpha": alpha})
    return _baddbmm(call.apply_inplace, input, batch1, batch2, beta, alpha)


def _addbmm(
    run: Callable[..., Any], input: Tensor, batch1: Tensor, batch2: Tensor, beta: complex, alpha: complex
) -> Tensor:
    same_dtypes_of_sum("addbmm", input, batch1, batch2)
    check_matrices("addbmm", batch1, batch2, 3, ("batch1", "batch2"))
    (b, m, k), n = raw(batch1).shape, raw(batch2).shape[2]
    # the sum over the batch is a product over batch and columns together
    left = reshape_op(permute(batch1, (1, 0, 2)), (m, b * k))
    return add_product(run, "addbmm", input, left, reshape_op(batch2, (b * k, n)), (m, n), beta, alpha)


@function(method=True, out="same", autocast="lower")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *old: Tensor, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """beta * input + alpha * the sum of batch1[b] @ batch2[b].  (M, N), (B, M, K), (B, K, N) -> (M, N)"""
    if old:
        return in_old_order(addbmm, (input, batch1, batch2, *old), {"beta": beta, "alpha": alpha})
    return _addbmm(call.by_function, input, batch1, batch2, beta, alpha)


@function(method=True)
def addbmm_(
    input: Tensor, batch1: Tensor, batch2: Tensor, *old: Tensor, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """In-place version of `addbmm`; a smaller tensor grows to the size of the result."""
    if old:
        return in_old_order(addbmm_, (input, batch1, batch2, *old), {"beta": beta, "alpha": alpha})
    if raw(input).shape == (raw(batch1).shape[1], raw(batch2).shape[2]) or input._view is not None:
        return _addbmm(call.apply_inplace, input, batch1, batch2, beta, alpha)
    found = addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
    inplace.check(input, found.requires_grad)
    turn(input, 0)
    input._array, input._edge, input._storage = found._array, found._edge, None
    return input


@function(method=True, out="same", inplace=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *old: Tensor, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * mat @ vec.  (M), (M, K), (K) -> (M)"""
    if old:
        return in_old_order(addmv, (input, mat, vec, *old), {"beta": beta, "alpha": alpha})
    same_dtypes_of_vector("addmv", input, mat, vec)
    check_vector("addmv", mat, vec, input)
    m = raw(mat).shape[0]
    first = unsqueeze(input, -1) if raw(input).ndim else input
    found = add_product(call.by_function, "addmv", first, mat, unsqueeze(vec, 1), (m, 1), beta, alpha)
    return reshape_op(found, (m,))


@function(method=True, out=True, inplace=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *old: Tensor, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * the outer product of two vectors.  (M, N), (M), (N) -> (M, N)"""
    if old:
        return in_old_order(addr, (input, vec1, vec2, *old), {"beta": beta, "alpha": alpha})
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        if raw(x).ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {raw(x).ndim}-D")
    check_expands("addr", input, (raw(vec1).size, raw(vec2).size))
    dtype = result_type_of(input, vec1, vec2).numpy
    input, vec1, vec2 = (x if raw(x).dtype == dtype else cast(x, dtype) for x in (input, vec1, vec2))
    check_factor("addr", "beta", beta, input)
    check_factor("addr", "alpha", alpha, input)
    product = outer_op(vec1, vec2)
    if dtype.kind == "b":
        return (product & bool(alpha)) | (input & bool(beta))
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else product + (input if beta == 1 else input * beta)


@function(method=True, out="same")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products of two vectors, the first one conjugated.  (K), (K) -> ()"""
    same_dtype("vdot", input, other, ("input", "other"), of_vectors)
    return dot(conj(input), other)


@function(method=True, out="same")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dimension of both.  (*, K), (**, K) -> (*, **)"""
    s, t = raw(input).shape, raw(other).shape
    if not s or not t:
        return input * other
    same_dtype("inner", input, other, ("input", "other"))
    if s[-1] != t[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(s)} and "
                           f"{list(t)}")  # fmt: skip
    return tensordot(input, other, ([-1], [-1]))


@function(out="same")
def tensordot(a: Tensor, b: Tensor, dims: object = 2) -> Tensor:
    """Products summed over pairs of dimensions: the last `dims` of a with the first of b, or two lists of them."""
    s, t = raw(a).shape, raw(b).shape
    first, second = contracted(dims, len(s), len(t))
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length, got "
                           f"{list(first)} and {list(second)}")  # fmt: skip
    first, second = wrap_dims(first, len(s)), wrap_dims(second, len(t))
    if raw(a).dtype != raw(b).dtype:
        same_dtype("tensordot", a, b, ("a", "b"))
    for i, j in zip(first, second, strict=True):
        if s[i] != t[j] and 1 not in (s[i], t[j]):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {s[i]} in dim {i} and second has "
                               f"size {t[j]} in dim {j}")  # fmt: skip
        if s[i] != t[j]:  # a size of 1 stands for all: the other is summed
            a, b = (
                (a.sum(i, keepdim=True, dtype=a.dtype), b) if t[j] == 1 else (a, b.sum(j, keepdim=True, dtype=b.dtype))
            )
    s, t = raw(a).shape, raw(b).shape
    free_a, free_b = ([d for d in range(len(x)) if d not in y] for x, y in ((s, first), (t, second)))
    k = math.prod(s[d] for d in first)
    left = reshape_op(permute(a, (*free_a, *first)), (math.prod(s[d] for d in free_a), k))
    right = reshape_op(permute(b, (*second, *free_b)), (k, math.prod(t[d] for d in free_b)))
    return reshape_op(mm(left, right), (*[s[d] for d in free_a], *[t[d] for d in free_b]))


def contracted(dims: Any, m: int, n: int) -> tuple[Any, Any]:
    """The dimensions to contract, of both."""
    if isinstance(raw(dims), np.ndarray):
        dims = raw(dims).tolist()
    if hasattr(dims, "__index__"):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(m, n):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return tuple(range(m - dims, m)), tuple(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise RuntimeError(
            f"tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]], but got dims={dims}"
        )
    first, second = dims
    return tuple([first] if hasattr(first, "__index__") else first), \
        tuple([second] if hasattr(second, "__index__") else second)  # fmt: skip


@function(method=True, out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: each element of `input` times all of `other`.  (*), (*) -> (*)"""
    s, t = raw(input).shape, raw(other).shape
    n = max(len(s), len(t))
    s, t = (1,) * (n - len(s)) + s, (1,) * (n - len(t)) + t
    left = reshape_op(input, tuple(k for size in s for k in (size, 1)))
    right = reshape_op(other, tuple(k for size in t for k in (1, size)))
    return reshaped(left * right, tuple(a * b for a, b in zip(s, t, strict=True)))


# Chains of matrices --------------------------------------------------------------------------------


def best_order(sizes: list[int]) -> dict[Any, Any]:
    """Where to split a chain of matrices (sizes[i], sizes[i + 1]) for the fewest multiplications: {(i, j): k}.

    The classic dynamic programme over sub-chains (Cormen et al., Introduction to Algorithms, 15.2).
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    at: dict[tuple[int, int], int] = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i, j], at[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return at


def chain(matrices: list[Any]) -> Tensor:
    """The product of matrices in the best order."""
    at = best_order([raw(matrices[0]).shape[0], *[raw(m).shape[1] for m in matrices]])
    return between(matrices, at, 0, len(matrices) - 1)


def between(matrices: list[Any], at: dict[Any, Any], i: int, j: int) -> Tensor:
    """The product of the matrices i to j, divided where `at` says.  (A function inside of `chain` would hold itself.)"""
    if i == j:
        return matrices[i]
    return mm(between(matrices, at, i, at[i, j]), between(matrices, at, at[i, j] + 1, j))


@function(ns="linalg", out="same", autocast="lower", unlike="expected out tensor to have dtype of the product: ")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the order that needs fewest multiplications; the first and last may be vectors."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind_of(tensors)}"
        )
    found = list(tensors)
    if len(found) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(found)}")
    for i, x in enumerate(found):
        least = 1 if i in (0, len(found) - 1) else 2
        if not least <= raw(x).ndim <= 2:
            which = "the first tensor" if i == 0 else "the last tensor" if least == 1 else f"tensor {i}"
            raise RuntimeError(
                f"multi_dot(): {which} must be {'1D or 2D' if least == 1 else '2D'} but got {raw(x).ndim}D"
            )
        same_dtype("multi_dot", found[0], x, ("tensor 0", f"tensor {i}"), _of_chains)
    row, column = raw(found[0]).ndim == 1, raw(found[-1]).ndim == 1
    if row:
        found[0] = unsqueeze(found[0], 0)
    if column:
        found[-1] = unsqueeze(found[-1], 1)
    for i in range(len(found) - 1):
        if raw(found[i]).shape[1] != raw(found[i + 1]).shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(raw(found[i]).shape)} and "
                               f"{list(raw(found[i + 1]).shape)} cannot be multiplied")  # fmt: skip
    result = chain(found)
    shape = raw(result).shape
    return reshape_op(result, shape[int(row) : 2 - int(column)]) if row or column else result


def _of_chains(x: object, y: object) -> str:
    """Two matrices of a chain of two dtypes."""
    return f"multi_dot(): all tensors must have be the same dtype but they are {in_c(x)} and {in_c(y)}"


@function()
def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the order that needs fewest multiplications; use linalg.multi_dot."""
    caller.warn_once("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
                     "instead, which accepts a list of two or more tensors rather than multiple parameters.")  # fmt: skip
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices) if out is None else call.write_out("chain_matmul", out, multi_dot(matrices), same=True)


# Cross product -------------------------------------------------------------------------------------


@op(name="linalg_cross", promote="arith", half=None, refuse="b", shape=shapes.same, batch=families.along_both)
def crossed(input: Array, other: Array, dim: int) -> Array:
    """Cross products along dimension `dim`, of size 3, of one shape.  (*), (*) -> (*)"""
    out = np.empty(input.shape, input.dtype)
    for at in _blocks(input, dim):
        _cross(input[at], other[at], dim, out[at])
    return out


def _blocks(x: Array, dim: int) -> list[Any]:
    """All of an array, or of 16 bits as many slices at a time as become float32 together."""
    if not is_half(x.dtype) or not x.size or dim % x.ndim == 0:
        return [...]
    some = max(len(x) * AT_ONCE // x.size, 1)
    return [slice(start, start + some) for start in range(0, len(x), some)]


def _cross(input: Array, other: Array, dim: int, out: Array) -> None:
    if is_half(out.dtype):
        (left, right), wide = up(input, other), np.empty(out.shape, np.float32)
        _cross(left, right, dim, wide)
        rounded(wide, out.dtype, out)
        return
    lead: tuple[Any, ...] = (slice(None),) * (dim % out.ndim)
    a, b, c = ([x[(*lead, i, ...)] for i in range(3)] for x in (input, other, out))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.multiply(a[j], b[k], out=c[i])
        c[i] -= a[k] * b[j]


crossed.grad("input")(lambda g, other, dim: crossed(conj(other), g, dim))
crossed.grad("other")(lambda g, input, dim: crossed(g, conj(input), dim))


def broadcast_pair(name: str, input: Tensor, other: Tensor) -> tuple[Any, Any]:
    """Both tensors, broadcast together without copying."""
    from rushlight.ops.shape.moved_views import broadcast_tensors

    same_dtype(name, input, other, ("input", "other"))
    if raw(input).ndim != raw(other).ndim:
        raise RuntimeError(f"{name}: inputs must have the same number of dimensions, got {raw(input).ndim} and "
                           f"{raw(other).ndim}")  # fmt: skip
    return broadcast_tensors(input, other)


@function(method=True, out="same")
@numpy_names
def cross(input: Tensor, other: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Cross products along `dim`, of size 3 in both (without it, the first such of `input`).  (*), (*) -> (*)"""
    shape, extents = raw(input).shape, raw(other).shape
    a, b = broadcast_pair("cross", input, other)
    if dim is None:
        caller.warn_once("Using torch.cross without specifying the dim arg is deprecated. Please either pass the dim explicitly or "
                         "simply use torch.linalg.cross, whose default dim is the last.")  # fmt: skip
        dim = next((d for d, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input of shape {list(shape)}")
    dim = wrap_dim(dim, len(shape))
    if shape[dim] != 3 or extents[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {shape[dim]} and {extents[dim]}"
        )
    return crossed(a, b, dim)


@function(ns="linalg", name="cross", out="same")
@numpy_names
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Cross products along `dim`, of size 3.  (*), (*) -> (*)"""
    a, b = broadcast_pair("linalg.cross", input, other)
    d = wrap_dim(dim, raw(a).ndim)
    if raw(input).shape[d] != 3 or raw(other).shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {raw(input).shape[d]} and "
                           f"{raw(other).shape[d]}")  # fmt: skip
    return crossed(a, b, d)
