"""Saved views of parameters that are freed: which part of a parameter they are, in place of its memory.

An operator on ``weight.t()`` saves an array on the memory of the weight, which would stay until backward.  A unit in which that
happens has its saved tensors looked at: of what lies on a parameter's memory the place is kept, and backward takes it from the
memory that has been gathered by then.  Units in which it does not happen pay nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.state import modes, set_mode
from rushlight.distributed.fsdp.parts import Part, whole
from rushlight.engine.saved import Sparing
from rushlight.storage import bytes_before, root_of
from rushlight.tensor import Tensor, wrap

__all__ = ["Pieces"]


class Piece(NamedTuple):
    """A place in the memory of a parameter."""

    part: Part
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


def pack(tensor: Tensor) -> Any:
    """The place of a view of a parameter that is whole for a while; any other tensor, and parameters themselves, as they are."""
    held = tensor._held
    if held.__class__ is not np.ndarray:
        return tensor
    part = whole.get(id(root_of(held)))
    if part is None or tensor._bits or tensor is part.param or (part.param.requires_grad and not tensor.requires_grad):
        return tensor  # what its gradient does not wait for may be used when the parameter has been freed
    return Piece(part, bytes_before(held), held.shape, held.strides, held.dtype)


def unpack(kept: Tensor) -> Tensor:
    """The tensor of a place, on the memory that the parameter has now.  Raises RuntimeError where it is not whole."""
    if not isinstance(kept, Piece):
        return kept
    if kept.part.root is None:
        raise RuntimeError(
            f"fully_shard: backward needs a view of {kept.part.name} after the parameter has been freed: its gradient was "
            "complete before. Use the parameter itself, or reshard_after_forward=False"
        )
    memory = kept.part.root.reshape(-1).view(np.uint8)
    return wrap(np.ndarray(kept.shape, kept.dtype, memory, kept.offset, kept.strides))


class Pieces:
    """Whether operators of a unit save views of its parameters, and the hooks that keep their places."""

    pair = Sparing((pack, unpack))

    def __init__(self) -> None:
        self.found = self.pushed = False

    def begin(self) -> None:
        """A forward begins: look at what it saves, if it is known to save views, and nobody else looks."""
        if self.found and modes.grad and not modes.saved_hooks:
            set_mode("saved_hooks", (self.pair,))
            self.pushed = True

    def end(self, *_: Any) -> None:
        """It has ended, or failed."""
        if self.pushed:
            self.pushed = False
            set_mode("saved_hooks", ())

    def freed(self, parts: Iterable[Part], free: Callable[..., Any]) -> None:
        """Free parameters, and see whether anything still holds their memory."""
        if self.found:
            free()
            return
        held = [weakref.ref(part.root) for part in parts if part.root is not None]
        free()
        self.found = any(memory() is not None for memory in held)
