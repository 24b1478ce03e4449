"""``torch._refs.fft``: the functions of `torch.fft`."""

from __future__ import annotations

from typing import Any

from rushlight.compat.rooms.private._refs import operator


def __getattr__(name: str) -> Any:
    return operator("fft", name)
