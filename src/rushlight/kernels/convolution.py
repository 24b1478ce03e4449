"""Convolutions and pools: the kernels that operators call.  See `kernels.reference.windows` for shapes."""

from __future__ import annotations

from rushlight.kernels.reference.windows import (
    conv,
    conv_input,
    conv_weight,
    max_pool,
    pool_gather,
    pool_scatter,
    window_spread,
    window_sum,
)

__all__ = [
    "conv",
    "conv_input",
    "conv_weight",
    "max_pool",
    "pool_gather",
    "pool_scatter",
    "window_spread",
    "window_sum",
]
