"""Nested tensors as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.ops.python.printing import history

if TYPE_CHECKING:
    from rushlight.nested.tensor import Nested

__all__ = ["shown"]


def shown(t: Nested) -> str:
    """What `repr` says: places in the layout torch.jagged, components in the layout torch.strided."""
    last = history(t)
    if hasattr(t, "_places"):
        nt: Any = t
        parts = [f"size={tuple(nt.shape)}", f"offsets={nt.offsets()!r}", *last, f"contiguous={nt.is_contiguous()}"]
        return f"NestedTensor({', '.join(parts)})"
    lines = ["  " + repr(x).replace("\n", "\n  ") for x in _components(t)]
    return "nested_tensor([\n" + ",\n".join(lines) + "\n]" + "".join(f", {word}" for word in last) + ")"


def _components(t: Nested) -> list[Any]:
    """Each component as it is printed: whether gradients flow, and not from where."""
    return [x.detach().requires_grad_(t.requires_grad) for x in t.detach().unbind()]
