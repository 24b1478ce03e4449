"""``torch.utils._pallas``: whether there is a compiler for kernels of that name."""

__all__ = ["has_cpu_pallas", "has_cuda_pallas", "has_jax_package", "has_pallas", "has_pallas_package", "has_tpu_pallas"]


def has_pallas_package() -> bool:
    """Whether it is installed: it would have nothing to compile for."""
    return False


has_jax_package = has_pallas = has_cpu_pallas = has_cuda_pallas = has_tpu_pallas = has_pallas_package
