"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

import functools
from typing import Any

from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.nn import functional as F
from rushlight.nn._linalg import linalg
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import register_parametrization
from rushlight.nn.utils.spectral_norm import as_matrix, default_dim, iterate
from rushlight.nn.utils.weight_norm import norm_except_dim, normalised
from rushlight.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """`g * v / |v|` from magnitude g and direction v."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normalised(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Any, ...]:
        """Magnitude and direction of a weight."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Compute a weight from its magnitude (original0) and its direction (original1).

    A state_dict of a module with `nn.utils.weight_norm` can be loaded.

    Source: Salimans and Kingma, Weight Normalization (2016).
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_renamed, name))
    return module


def _renamed(name: str, state_dict: dict[Any, Any], prefix: str, *_: object) -> None:
    """Give magnitude and direction of `nn.utils.weight_norm` the names of originals."""
    former = [f"{prefix}{name}_{part}" for part in "gv"]
    if all(key in state_dict for key in former):
        for i, key in enumerate(former):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)


class _SpectralNorm(Module):
    """A weight divided by its largest singular value."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
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
            iterate(matrix.t(), self._v, self._u, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix.t(), self._v, self._u, self.n_power_iterations, self.eps)  # u first: the hook begins with v
        u, v = self._u.clone(), self._v.clone()
        return weight / ops.dot(u, ops.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself: what is assigned is taken as not yet normalised."""
        return value


def own_tensor(module: Module, name: str) -> Tensor:
    """The tensor of that name.  Raises ValueError where the module has none."""
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Compute a weight divided by its largest singular value.

    Source: Miyato et al., Spectral Normalization for Generative Adversarial Networks (2018).
    """
    weight = own_tensor(module, name)
    made = _SpectralNorm(weight, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """A (semi-)orthogonal matrix computed from a free one, times a fixed orthogonal base if there is one.

    "matrix_exp" and "cayley" map the skew-symmetric part of the free matrix, "householder" its columns below the diagonal,
    whose elements are signs.
    """

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool = True) -> None:
        super().__init__()
        if orthogonal_map == "householder" and weight.is_complex():
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            rows = max(weight.shape[-2:])
            self.register_buffer("base", weight.detach().new_empty((*weight.shape[:-2], rows, rows)))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        if wide:
            x = x.transpose(-2, -1)
        q = _reflected(x) if self.orthogonal_map == "householder" else _rotated(x, self.orthogonal_map)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.transpose(-2, -1) if wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        """The free matrix for `value`, which without a base only "householder" has; with one, that becomes the base."""
        if value.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                             f"{value.shape}.")  # fmt: skip
        q = value.transpose(-2, -1) if value.shape[-2] < value.shape[-1] else value
        if hasattr(self, "base"):
            with no_grad():
                self.base.copy_(_completed(q))
            free = ops.zeros_like(value)
            free.diagonal(dim1=-2, dim2=-1).fill_(-1)
            return free
        if self.orthogonal_map != "householder":
            raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley "
                                      "parametrizations when use_trivialization=False.")  # fmt: skip
        free, tau = ops.geqrf(q.detach())
        signs = free.diagonal(dim1=-2, dim2=-1)
        # Where nothing is below the diagonal, geqrf reflects nothing, and the formula of the map turns the sign.
        signs.copy_(ops.where((signs < 0) ^ (tau == 0), -1.0, 1.0))
        return free.transpose(-2, -1) if value.shape[-2] < value.shape[-1] else free


def _rotated(x: Tensor, orthogonal_map: str) -> Tensor:
    """The first columns of the exponential or the Cayley transform of the skew-symmetric matrix below the diagonal of `x`."""
    rows, columns = x.shape[-2:]
    lower = x.tril()
    if rows != columns:
        lower = ops.cat([lower, lower.new_zeros(*lower.shape[:-1], rows - columns)], dim=-1)
    skew = lower - lower.mH
    if orthogonal_map == "matrix_exp":
        return ops.matrix_exp(skew)[..., :columns]
    identity = ops.eye(rows, dtype=x.dtype, device=x.device)
    return linalg("solve")(identity + skew * -0.5, identity + skew * 0.5)[..., :columns]


def _reflected(x: Tensor) -> Tensor:
    """The first columns of the product of reflections at the columns of `x`, with the signs on its diagonal."""
    below = x.tril(-1)
    q = linalg("householder_product")(below, 2.0 / (1.0 + (below * below).sum(-2)))
    return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _completed(matrix: Tensor) -> Tensor:
    """An orthogonal matrix whose first columns are the orthogonal factor of `matrix` (rows >= columns); the others are drawn."""
    missing = matrix.shape[-2] - matrix.shape[-1]
    if missing:
        drawn = ops.randn(*matrix.shape[:-1], missing, dtype=matrix.dtype, device=matrix.device)
        matrix = ops.cat([matrix, drawn], dim=-1)
    q, r = linalg("qr")(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a matrix (or batch of them) orthogonal, by columns or rows, whichever are fewer.

    Args:
        orthogonal_map: "matrix_exp", the default of square and complex matrices, "cayley", or "householder", the default
            of others.
        use_trivialization: move around the present orthogonal factor, which becomes a fixed base. Without it only
            "householder" can be assigned to.

    Raises ValueError for other maps and below 2 dimensions.  Source: Lezcano-Casado, Trivializations for
    gradient-based optimization on manifolds (2019).
    """
    weight = own_tensor(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    square = weight.shape[-2] == weight.shape[-1]
    orthogonal_map = orthogonal_map or ("matrix_exp" if square or weight.is_complex() else "householder")
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
