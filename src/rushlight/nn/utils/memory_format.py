"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

if TYPE_CHECKING:
    from rushlight.dispatch.formats import memory_format
    from rushlight.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _converted(module: Module, kinds: tuple[Any, ...], memory_format: memory_format | None) -> Any:
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: memory_format | None) -> Module:
    """Lay out the weights of all 2-d convolutions in `module` in this memory format.  Returns the module."""
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: memory_format) -> Module:
    """Lay out the weights of all 3-d convolutions in `module` in this memory format.  Returns the module."""
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)
