"""``torch.backends.python_native``: kernels that PyTorch writes in languages inside Python, for GPUs.  There are none here."""

from __future__ import annotations

__all__ = ["all_dsls", "available_dsls", "get_dsl_operations"]

available_dsls: list[str] = []
all_dsls: list[str] = []


def get_dsl_operations(dsl_name: str) -> list[str]:
    """The operators that a language computes: none."""
    return []
