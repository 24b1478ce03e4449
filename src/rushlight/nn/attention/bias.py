"""Causal masks by name, for attention between sequences of different lengths.

>>> import rushlight as torch
>>> from rushlight.nn.attention.bias import causal_lower_right, causal_upper_left
>>> causal_upper_left(2, 3).tolist(), causal_lower_right(2, 3).tolist()
([[True, False, False], [True, True, False]], [[True, True, False], [True, True, True]])
"""

from __future__ import annotations

import enum
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.caller import warn
from rushlight.dispatch import functions as ops
from rushlight.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the mask the diagonal ends in: where queries are fewer than keys, they are the first or the last."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask of what each query may look at, True, for `attn_mask`.  -> (seq_len_q, seq_len_kv), bool

    Raises AssertionError for a variant that is none; warns where queries at the beginning may look at nothing.
    """

    _plain_results = True
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        ahead = 0 if variant == CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
        made = ops.ones(seq_len_q, seq_len_kv, dtype=dtypes.bool).tril(ahead)
        return made.as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warn("causal_lower_right: the first queries may look at no key where seq_len_q > seq_len_kv, and attend to "
                          "nothing")  # fmt: skip

    def __repr__(self, **_: object) -> str:
        return repr(self.as_subclass(Tensor)).replace("tensor", "CausalBias", 1)


def causal_upper_left(*size: int) -> CausalBias:
    """Query i may look at keys 0 to i.  size: two numbers.  Raises AssertionError for others."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The last query may look at all keys, each one before it at one less.  size: two numbers.  Raises AssertionError."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
