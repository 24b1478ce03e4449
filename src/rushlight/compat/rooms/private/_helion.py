"""``torch.utils._helion``: whether there is a compiler for kernels of GPUs of that name."""

__all__ = ["has_helion", "has_helion_package"]


def has_helion_package() -> bool:
    """Whether it is installed: it would have nothing to compile for."""
    return False


has_helion = has_helion_package
