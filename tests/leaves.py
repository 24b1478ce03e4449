"""Tensors that tests differentiate by."""

from __future__ import annotations

from typing import Any

import rushlight as torch


def leaf(*values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A tensor of these numbers that requires grad."""
    return torch.tensor(values, dtype=dtype, requires_grad=True)
