"""What operators of `torch.ops.aten` compute that have other arguments or results than a public function of their name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.library.aten import (
    asked,
    composed,
    gradients,
    handed,
    matrices,
    packed,
    shown,
    shown_layers,
    values,
    windows,
)
from rushlight.ops.python import handing, unread
from rushlight.ops.python.aten import MEANINGS, packet

# Operators of PyTorch that libraries name, as keys of tables, and that nothing computes here.
KEYS = frozenset({"fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine_cachemask",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "_ctc_loss", "_ctc_loss_backward", "_embedding_bag",
    "_embedding_bag_backward", "_embedding_bag_forward_only", "_histogramdd_bin_edges", "_segment_reduce_backward",
    "_efficient_attention_forward", "_flash_attention_forward", "_fused_adam_", "_pin_memory", "_reshape_alias",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_backward", "_sparse_addmm", "_sparse_mm_reduce_impl",
    "sym_constrain_range_for_size",})  # fmt: skip

MEANINGS.update(dict.fromkeys(KEYS))
for room in (values, windows, matrices, gradients, packed):
    MEANINGS.update(room.MEANINGS)

handing.SHOWN.update(shown.rules(vars(shown) | vars(shown_layers)))
handing.COMPOSED.update(composed.COMPOSED)
handing.AUXILIARY.update(composed.AUXILIARY)
handing.FOUND.update(shown_layers.FOUND)
unread.ASKED.update(asked.ASKED)
handing.GRADIENTS.update(handed.rules())


def function(name: str) -> Callable[..., Any]:
    """What computes an operator, under its own name.  Raises AttributeError where nothing does."""
    found = None if name.startswith("__") else packet(name).function
    if found is None:
        raise AttributeError(f"no function {name!r}: nothing computes it here")
    return found


__getattr__ = function  # the modules that have some of these functions take them from here
