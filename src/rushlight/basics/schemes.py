"""Ways in which numbers are brought to few bits, as names: torch.per_tensor_affine and its like."""

from __future__ import annotations

__all__ = ["SCHEMES", "qscheme"]


class qscheme:
    """A way to bring numbers to few bits: one scale or one for each channel, steps about zero or from a zero point.

    >>> import rushlight as torch
    >>> torch.per_tensor_affine
    torch.per_tensor_affine
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


per_tensor_affine, per_tensor_symmetric = qscheme("per_tensor_affine"), qscheme("per_tensor_symmetric")
per_channel_affine, per_channel_symmetric = qscheme("per_channel_affine"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
PER_TENSOR = per_tensor_affine, per_tensor_symmetric
SYMMETRIC = per_tensor_symmetric, per_channel_symmetric
PER_CHANNEL = per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams
SCHEMES = *PER_TENSOR, *PER_CHANNEL
