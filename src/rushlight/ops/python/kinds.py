"""What operators of `torch.ops` are to programs that ask: those of the library itself, and those that programs declare."""

from __future__ import annotations


class OpOverload:
    """One overload of an operator, as `torch.ops.aten.add.Tensor`."""


class OpOverloadPacket:
    """The overloads of one name, as `torch.ops.aten.add`."""
