"""Products of groups of rows or columns with a matrix each, as layers of several experts compute them."""

from __future__ import annotations

from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.named import named
from rushlight.dispatch.registry import function
from rushlight.tensor import Tensor

_KINDS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


@function(ns="nn.functional")
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Any:
    """The product of each of G groups.

    (T, K), (G, K, N) -> (T, N): rows of `mat_a` times the matrix of their group; (G, M, K), (K, T) -> (M, T): columns of
    `mat_b` likewise; (M, T), (T, N) -> (G, M, N): of columns of the one with rows of the other; (G, M, K), (G, K, N) -> (G, M, N).

    offs: (G,) of int32, where each group ends; what lies behind the last end is 0 in the result.  Not with two batches.
    float32, bfloat16 or float16, with gradients.  RuntimeError for other dtypes, a bias, which PyTorch has none of either,
    an `out_dtype` that is another than theirs, and sizes that do not go together.

    >>> import rushlight as torch
    >>> experts = torch.stack([torch.eye(2), 2 * torch.eye(2)])
    >>> torch.nn.functional.grouped_mm(torch.ones(3, 2), experts, offs=torch.tensor([1, 3], dtype=torch.int32))
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return mat_a @ mat_b
    ends = offs.tolist()
    spans = list(zip([0, *ends], ends, strict=False))
    if mat_b.dim() == 3:
        rows = [mat_a[start:end] @ mat_b[i] for i, (start, end) in enumerate(spans)]
        return named.cat([*rows, mat_a.new_zeros(len(mat_a) - ends[-1], mat_b.shape[-1])])
    if mat_a.dim() == 3:
        columns = [mat_a[i] @ mat_b[:, start:end] for i, (start, end) in enumerate(spans)]
        return named.cat([*columns, mat_b.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1])], 1)
    return named.stack([mat_a[:, start:end] @ mat_b[start:end] for start, end in spans])


def _check(a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: dtype | None) -> None:
    """Raise RuntimeError for what `grouped_mm` does not take."""
    for name, x in (("mat_a", a), ("mat_b", b)):
        if x.dtype not in _KINDS:
            raise RuntimeError(f"grouped_mm: Expected {name} to be Float32, BFloat16 or Float16 matrix, got {x.dtype}")
        if x.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} has to be 2 or 3d, got {tuple(x.shape)}")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"grouped_mm: expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet: add it to the result")
    if out_dtype not in (None, a.dtype):
        raise RuntimeError(f"Grouped gemm output dtype must match `mat_a` dtype, got {out_dtype} and {a.dtype}")
    if (offs is None) != (a.dim() == b.dim() == 3):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None:
        _check_ends(a, b, offs)


def _check_ends(a: Tensor, b: Tensor, offs: Tensor) -> None:
    """Raise RuntimeError for ends of groups that are none, in order and within the dimension that they divide."""
    if offs.dtype is not dtypes.int32:
        raise RuntimeError(f"grouped_mm: Offsets have to be int32, got {offs.dtype}")
    groups = next((len(x) for x in (a, b) if x.dim() == 3), len(offs))
    if offs.dim() != 1 or len(offs) != groups or not groups:
        raise RuntimeError(f"grouped_mm: offs has to have one end for each of {groups} groups, got {tuple(offs.shape)}")
    size, ends = b.shape[1] if a.dim() == 3 else a.shape[0] if b.dim() == 3 else a.shape[1], offs.tolist()
    if [0, *ends, size] != sorted([0, *ends, size]):
        raise RuntimeError(f"grouped_mm: offs has to be of ends in order, up to {size}, got {ends}")
