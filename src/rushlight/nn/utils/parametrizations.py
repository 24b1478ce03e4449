"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

from rushlight import ops
from rushlight.engine.modes import no_grad
from rushlight.nn import functional as F
from rushlight.nn._linalg import linalg
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import register_parametrization
from rushlight.nn.utils.spectral_norm import as_matrix, default_dim, iterate
from rushlight.nn.utils.weight_norm import norm_except_dim, normalised

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """`g * v / |v|` from magnitude g and direction v."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return normalised(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        """Magnitude and direction of a weight."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Compute a weight from its magnitude (original0) and its direction (original1).

    Source: Salimans and Kingma, Weight Normalization (2016).
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight divided by its largest singular value."""

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                u = F.normalize(matrix.new_empty(matrix.shape[0]).normal_(0, 1), dim=0, eps=eps)
                v = F.normalize(matrix.new_empty(matrix.shape[1]).normal_(0, 1), dim=0, eps=eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            iterate(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()
        return weight / ops.dot(u, ops.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        """The weight itself: what is assigned is taken as not yet normalised."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Compute a weight divided by its largest singular value.

    Source: Miyato et al., Spectral Normalization for Generative Adversarial Networks (2018).
    """
    weight = getattr(module, name)
    made = _SpectralNorm(weight, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """The (semi-)orthogonal matrix `base @ exp(A)` of the skew-symmetric part A of a free matrix."""

    def __init__(self, base: Any, orthogonal_map: str) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.register_buffer("base", base)

    def forward(self, x: Any) -> Any:
        rows, columns = x.shape[-2:]
        wide = rows < columns
        if wide:
            x, rows, columns = x.transpose(-2, -1), columns, rows
        lower = x.tril(-1)
        if rows != columns:
            lower = ops.cat([lower, lower.new_zeros(*lower.shape[:-1], rows - columns)], dim=-1)
        skew = lower - lower.transpose(-2, -1)
        if self.orthogonal_map == "matrix_exp":
            q = ops.matrix_exp(skew)
        else:
            identity = ops.eye(rows, dtype=x.dtype, device=x.device)
            q = linalg("solve")(identity + skew * -0.5, identity + skew * 0.5)
        q = (self.base @ q)[..., :columns]
        return q.transpose(-2, -1) if wide else q

    def right_inverse(self, value: Any) -> Any:
        """Zeros: the base becomes the orthogonal factor of `value`."""
        q = value.transpose(-2, -1) if value.shape[-2] < value.shape[-1] else value
        with no_grad():
            self.base.copy_(_completed(q))
        return ops.zeros_like(value)


def _completed(matrix: Any) -> Any:
    """An orthogonal matrix whose first columns are the orthogonal factor of `matrix` (rows >= columns)."""
    q, r = linalg("qr")(matrix, mode="complete")
    columns = r.shape[-1]
    signs = r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return ops.cat([q[..., :columns] * signs, q[..., columns:]], dim=-1)


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a matrix (or batch of them) orthogonal, by columns or rows, whichever are fewer.

    Args:
        orthogonal_map: "matrix_exp" (default) or "cayley".
        use_trivialization: always True here: the present orthogonal factor is the base around which the free matrix
            moves.

    Raises ValueError for other maps and below 2 dimensions.  Source: Lezcano-Casado, Trivializations for
    gradient-based optimization on manifolds (2019).
    """
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    orthogonal_map = orthogonal_map or "matrix_exp"
    if orthogonal_map not in ("matrix_exp", "cayley"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley" (householder is not supported), got '
            f"{orthogonal_map}"
        )
    rows = max(weight.shape[-2:])
    base = weight.detach().new_empty((*weight.shape[:-2], rows, rows))
    return register_parametrization(module, name, _Orthogonal(base, orthogonal_map), unsafe=True)
