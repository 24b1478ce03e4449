"""Modules made of parts of a graph."""

from __future__ import annotations

from collections.abc import Mapping

from rushlight.nn.modules.module import Module

__all__ = ["HolderModule"]


class HolderModule(Module):
    """A module that holds others by name, and computes nothing."""

    def __init__(self, d: Mapping[str, Module | None]):
        super().__init__()
        for name, module in d.items():
            self._modules[name] = module
