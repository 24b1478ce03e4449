"""The module that `torch.compile` returns in PyTorch: here it returns its argument, and this has no instances."""

from __future__ import annotations

from rushlight.nn.modules.module import Module

__all__ = ["OptimizedModule", "is_dynamo_supported"]


class OptimizedModule(Module):
    """A compiled module: there are none.  Raises TypeError when made."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("OptimizedModule: there is nothing to compile to; torch.compile returns modules as they are")


def is_dynamo_supported() -> bool:
    """Whether programs can be compiled: no."""
    return False
