"""Bits of tensors: whether one shows the conjugates, or the opposites, of what is in its memory."""

from __future__ import annotations

from rushlight.signs import CONJ, NEG, turn
from rushlight.tensor import Tensor

__all__ = ["_set_conj", "_set_neg"]


def _set_conj(x: Tensor, conj: bool) -> None:
    """Let a complex tensor show the conjugates of what is in its memory, or what is there.  Raises RuntimeError for a real one."""
    if conj and not x.is_complex():
        raise RuntimeError(f"_set_conj: only complex tensors have a conjugate bit, and this one is of {x.dtype}")
    turn(x, x._bits & ~CONJ | CONJ * bool(conj))


def _set_neg(x: Tensor, neg: bool) -> None:
    """Let a tensor show the opposites of what is in its memory, or what is there."""
    turn(x, x._bits & ~NEG | NEG * bool(neg))
