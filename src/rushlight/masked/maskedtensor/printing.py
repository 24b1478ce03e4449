"""Masked tensors as text."""

from __future__ import annotations

from typing import Any

__all__ = ["shown"]


def shown(data: Any, mask: Any) -> str:
    """What counts as numbers, the rest as ``--``."""
    form = "{:8.4f}".format if data.dtype.is_floating_point else str
    if data.ndim == 0:
        return f"MaskedTensor({form(data.item()) if bool(mask) else '--'}, {bool(mask)})"
    return f"MaskedTensor(\n{_rows(data, mask, form, '  ')}\n)"


def _rows(data: Any, mask: Any, form: Any, indent: str) -> str:
    if data.ndim == 1:
        items = [form(x) if counts else "--" for x, counts in zip(data.tolist(), mask.tolist(), strict=True)]
        return f"{indent}[{', '.join(item if item != '--' else '      --' for item in items)}]"
    rows = ",\n".join(_rows(data[i], mask[i], form, indent + "  ") for i in range(len(data)))
    return f"{indent}[\n{rows}\n{indent}]"
