"""Functions that PyTorch has taken away: they are still there to say what is called now."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.tensor import Tensor

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]


def _gone(name: str, now: str) -> NoReturn:
    raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. torch.{name}: use {now}")


def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: object = None) -> NoReturn:
    """Raises RuntimeError, which names `torch.linalg.eigh`."""
    _gone("symeig", "torch.linalg.eigh or eigvalsh, which read the lower triangle unless UPLO='U'")


def eig(self: Tensor, eigenvectors: bool = False, *, e: object = None, v: object = None) -> NoReturn:
    """Raises RuntimeError, which names `torch.linalg.eig`."""
    _gone("eig", "torch.linalg.eig or eigvals, whose results are complex")


def lstsq(input: Tensor, A: Tensor, *, out: object = None) -> NoReturn:
    """Raises RuntimeError, which names `torch.linalg.lstsq`."""
    _gone("lstsq", "torch.linalg.lstsq(A, input), with the operands the other way round")


def solve(input: Tensor, A: Tensor, *, out: object = None) -> NoReturn:
    """Raises RuntimeError, which names `torch.linalg.solve`."""
    _gone("solve", "torch.linalg.solve(A, input), with the operands the other way round")


def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> NoReturn:
    """Raises RuntimeError, which names `torch.linalg.matrix_rank`."""
    _gone("matrix_rank", "torch.linalg.matrix_rank, whose argument `hermitian` was `symmetric`")


for _method in (eig, lstsq, solve, symeig):
    setattr(Tensor, _method.__name__, _method)
