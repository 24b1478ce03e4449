"""Decompositions, distances, convolutions and attention under the arguments that they have below PyTorch's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.dispatch.named import Named
from rushlight.dispatch.results import named
from rushlight.tensor import Tensor

torch, functional, linalg = Named(""), Named("nn.functional"), Named("linalg")
DET, SLOGDET = (
    named("_linalg_det", "result", "LU", "pivots"),
    named("_linalg_slogdet", "sign", "logabsdet", "LU", "pivots"),
)
EIGH, SVD = named("_linalg_eigh", "eigenvalues", "eigenvectors"), named("_linalg_svd", "U", "S", "Vh")
SOLVE_EX = named("_linalg_solve_ex", "result", "LU", "pivots", "info")


def det(A: Tensor) -> tuple[Tensor, ...]:
    """The determinant, and the factors."""
    return DET((linalg.det(A), *linalg.lu_factor_ex(A)[:2]))


def slogdet(A: Tensor) -> tuple[Tensor, ...]:
    """Sign and logarithm of the determinant, and the factors."""
    return SLOGDET((*linalg.slogdet(A), *linalg.lu_factor_ex(A)[:2]))


def eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, ...]:
    """Eigenvalues, and eigenvectors where they are asked for."""
    return EIGH(linalg.eigh(A, UPLO) if compute_v else (linalg.eigvalsh(A, UPLO), A.new_empty((0,))))


def svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, ...]:
    """Singular values, and vectors where they are asked for."""
    if compute_uv:
        return SVD(linalg.svd(A, full_matrices, driver=driver))
    return SVD((A.new_empty((0,)), linalg.svdvals(A, driver=driver), A.new_empty((0,))))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The solution, and the factors."""
    result, info = linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    return SOLVE_EX((result, *linalg.lu_factor_ex(A)[:2], info))


def check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    """Raise torch.linalg.LinAlgError where a factorization says that it did not succeed."""
    if bool((info != 0).any()):
        from rushlight.linalg import LinAlgError

        where = "" if is_matrix else f" (batch element {int(info.reshape(-1).ne(0).nonzero()[0])})"
        raise LinAlgError(f"{api_name}{where}: the factorization stopped with the code {int(info.abs().max())}")


def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """`torch.cdist` whose mode is a number."""
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    return torch.cdist(x1, x2, p, modes[compute_mode or 0])


def chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int, *, out: Tensor | None = None) -> Tensor:
    """Tensors cut in `num_chunks` at `dim`, filled up with zeros and flat behind it, one behind the other in each chunk."""
    parts = []
    for x in tensors:
        at = dim % x.dim()
        size = -(-x.shape[at] // num_chunks)
        padded = torch.cat([x, x.new_zeros((*x.shape[:at], size * num_chunks - x.shape[at], *x.shape[at + 1 :]))], at)
        parts.append(padded.reshape(*x.shape[:at], num_chunks, -1))
    return torch.cat(parts, -1, out=out)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention, and the logarithms of the sums of exponentials of its scores.  (N, H, L, E), (N, H, S, E) -> (N, H, L, E), (N, H, L)."""
    out = functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=dtypes.bool).triu(1)
        scores = scores.masked_fill(hidden, -float("inf"))
    if attn_mask is not None:
        hides = attn_mask.dtype is dtypes.bool
        scores = scores.masked_fill(~attn_mask, -float("inf")) if hides else scores + attn_mask
    return out, torch.logsumexp(scores, -1)


def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtypes.dtype | None = None,
) -> Any:
    """Products of groups."""
    return functional.grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


MEANINGS: dict[str, Callable[..., Any]] = {
    "_linalg_det": det, "_linalg_slogdet": slogdet, "_linalg_eigh": eigh, "_linalg_svd": svd, "_linalg_solve_ex": solve_ex,
    "_linalg_check_errors": check_errors, "_cdist_forward": cdist, "_pdist_forward": lambda x, p=2.0: functional.pdist(x, p),
    "_euclidean_dist": lambda x1, x2: torch.cdist(x1, x2), "_chunk_cat": chunk_cat, "_grouped_mm": grouped_mm,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
}  # fmt: skip
