"""``torch._refs.nn.functional``: the functions of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from rushlight.nn import functional


def __getattr__(name: str) -> Any:
    return getattr(functional, name)
