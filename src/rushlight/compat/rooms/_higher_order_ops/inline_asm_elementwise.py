"""``torch._higher_order_ops.inline_asm_elementwise``: programs for GPUs, in their own language."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["inline_asm_elementwise"]


def inline_asm_elementwise(*inputs: object, asm_str: str, constraints: str, **options: object) -> NoReturn:
    """Refused: raises RuntimeError, as PyTorch does for tensors of the CPU."""
    raise RuntimeError("inline_asm_elementwise only supports CUDA tensors: there is no GPU here")
