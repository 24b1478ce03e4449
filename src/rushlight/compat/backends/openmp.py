"""``torch.backends.openmp``: threads inside the native kernels."""

from rushlight import kernels

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether the native kernels, which use OpenMP, have been loaded (they are at the first use)."""
    return bool(kernels.native_status()["state"] == "loaded")
