"""``torch.backends.mkl``: Intel's MKL, which rushlight does not use."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether Intel's MKL is used: no, matrix products are those of NumPy's BLAS."""
    return False
