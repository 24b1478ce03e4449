"""What ``fully_shard`` may be told beside the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Data types.  param_dtype: that parameters are gathered in; reduce_dtype: that gradients are added up in (16-bit ones in
    float32 by default); output_dtype: of outputs; cast_forward_inputs: whether inputs are converted to `param_dtype`."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where parts lie: in memory."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Where parts lie: in the memory of the CPU, as they do anyway."""

    pin_memory: bool = True
