"""``torch._refs.nn``: the functions of `torch.nn.functional`."""

from rushlight.compat.rooms.private._refs.nn import functional

__all__ = ["functional"]
