"""``torch._refs.special``: the functions of `torch.special`."""

from __future__ import annotations

from typing import Any

from rushlight.compat.rooms.private._refs import operator


def __getattr__(name: str) -> Any:
    return operator("special", name)
