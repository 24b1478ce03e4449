"""Functions at the top of torch that begin with an underscore, by which programs reach what lies below the public ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight import absent
from rushlight.basics import dtypes
from rushlight.basics.naming import called
from rushlight.compat.beneath import norm_except_dim
from rushlight.dispatch.named import named
from rushlight.sparse import construct

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.tensor import Tensor


def _addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1, use_gelu: bool = False
) -> object:
    """relu, or gelu, of beta * self + alpha * (mat1 @ mat2).  (N, M), (N, K), (K, M) -> (N, M)"""
    from rushlight.nn import functional

    found = named.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return functional.gelu(found) if use_gelu else found.relu()


def _has_compatible_shallow_copy_type(self: Tensor, from_: Tensor) -> bool:
    """Whether one tensor's memory can become another's: both strided, or both sparse."""
    return self.is_sparse == from_.is_sparse


def _int_mm(self: Tensor, mat2: Tensor) -> object:
    """The product of two matrices of int8, or of one of uint8 and one of int8, in int32.  (N, K), (K, M) -> (N, M)

    Raises RuntimeError for other dtypes and for what are no matrices that go together.
    """
    for what, x in (("self", self), ("mat2", mat2)):
        if x.dim() != 2:
            raise RuntimeError(f"_int_mm: Expected {what} to be of dimension 2 but got {x.dim()}")
        if x.dtype is not dtypes.int8 and not (x is self and x.dtype is dtypes.uint8):
            kinds = "int8 or uint8" if what == "self" else "of type int8"
            raise RuntimeError(f"_int_mm: Expected {what} dtype to be {kinds} but got {x.dtype}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"_int_mm: self.size(1) needs to match mat2.size(0), got {self.shape[1]} and {mat2.shape[0]}"
        )
    return self.int() @ mat2.int()


def _scaled_mm(
    self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None, scale_result: Tensor | None = None,
    out_dtype: dtypes.dtype | None = None, use_fast_accum: bool = False,
) -> object:  # fmt: skip
    """The product of two matrices of 8 bits, each times its scale, computed in float32.  (N, K), (K, M) -> (N, M)

    scale_a, scale_b: one number each, or one for each row (N, 1) and each column (1, M).  out_dtype: default self's.
    Raises RuntimeError for what are no matrices that go together, ValueError for other dtypes and scales.
    """
    for what, x in (("mat1", self), ("mat2", mat2)):
        if x.dim() != 2:
            raise RuntimeError(f"{what} must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat_a and mat_b shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    eights = all(str(x.dtype).startswith("torch.float8") for x in (self, mat2))
    single = scale_a.numel() == 1 and scale_b.numel() == 1
    rows = tuple(scale_a.shape) == (self.shape[0], 1) and tuple(scale_b.shape) == (1, mat2.shape[1])
    if not eights or not (single or rows) or any(s.dtype is not dtypes.float32 for s in (scale_a, scale_b)):
        raise ValueError(
            "Invalid scaling configuration: expected matrices of float8 with one float32 scale each (TensorWise), or with scales of shapes "
            f"({self.shape[0]}, 1) and (1, {mat2.shape[1]}) (RowWise), got {self.dtype}, {mat2.dtype}, {list(scale_a.shape)} and "
            f"{list(scale_b.shape)}"
        )
    found = (self.float() @ mat2.float()) * scale_a * scale_b
    found = found if bias is None else found + bias.float()
    found = found if scale_result is None else found * scale_result
    return found.to(self.dtype if out_dtype is None else out_dtype)


def _compute_linear_combination(input: Tensor, coefficients: Tensor) -> object:
    """Sums of rows, each times a coefficient.  (K, *), (N, K) -> (N, *)"""
    return named.tensordot(coefficients, input, 1)


def _nnpack_available() -> bool:
    """Whether convolutions may be left to NNPACK, a library for phones: it is not used."""
    return False


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Any:
    """`g * v / |v|`, the norm over all dimensions but `dim`.  (*), (1, .., N, .., 1) -> (*)"""
    return v * (g / norm_except_dim(v, 2, dim))


def _debug_has_internal_overlap(self: Tensor) -> int:
    """Whether several elements lie at one place in memory: 0 if not, 1 if so, 2 where strides do not tell at once."""
    if self.is_contiguous() or _dense(self):
        return 0
    repeated = any(size > 1 and not stride for size, stride in zip(self.shape, self.stride(), strict=True))
    return 1 if repeated else 2


def _dense(x: Tensor) -> bool:
    """Whether the elements fill their memory in some order of the dimensions."""
    step = 1
    for stride, size in sorted((s, n) for n, s in zip(x.shape, x.stride(), strict=True) if n > 1):
        if stride != step:
            return False
        step *= size
    return True


def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size: Any, is_coalesced: bool | None = None
) -> None:
    """Raises RuntimeError unless these are the parts of a tensor in the layout COO."""
    construct.sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, layout: Any
) -> None:
    """Raises RuntimeError unless these are the parts of a matrix in a compressed layout."""
    construct.sparse_compressed_tensor(
        compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True
    )


def _of_layout(kind: str) -> Callable[..., Any]:
    def check(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: object) -> None:
        make = getattr(construct, f"sparse_{kind}_tensor")
        make(compressed_indices, plain_indices, values, size, check_invariants=True)

    return called(
        check,
        f"_validate_sparse_{kind}_tensor_args",
        f"Raises RuntimeError unless these are the parts of a matrix in the layout {kind.upper()}.",
    )


_scaled_mm_v2 = absent.refusing("torch", "_scaled_mm_v2", "of products of scaled matrices torch._scaled_mm is here")
_validate_sparse_csr_tensor_args, _validate_sparse_csc_tensor_args = _of_layout("csr"), _of_layout("csc")
_validate_sparse_bsr_tensor_args, _validate_sparse_bsc_tensor_args = _of_layout("bsr"), _of_layout("bsc")
