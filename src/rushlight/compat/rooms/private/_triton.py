"""``torch.utils._triton``: there is none, for it compiles for GPUs."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton() -> bool:
    """Whether Triton can compile: no."""
    return False


def has_triton_package() -> bool:
    """Whether Triton is of any use here: no."""
    return False
