"""Checks that the optimizers here share."""

from __future__ import annotations

from typing import Any


def check_ways(defaults: dict[str, Any]) -> None:
    """Refuse `fused` together with `foreach`, as the other optimizers do."""
    if defaults.get("fused") and defaults.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
