"""``torch.backends.cusparselt``: NVIDIA's products of sparse matrices, which rushlight does not use."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available() -> bool:
    """Whether cuSPARSELt is there: no."""
    return False


def version() -> int | None:
    """Its version: None."""
    return None


def get_max_alg_id() -> int | None:
    """How many algorithms it has: None."""
    return None
