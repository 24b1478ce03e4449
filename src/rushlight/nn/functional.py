"""The functions that layers are made of: what the operators publish in the namespace "nn.functional".

>>> import rushlight as torch
>>> import rushlight.nn.functional as F
>>> F.relu(torch.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.nn import _reduction as _Reduction  # noqa: F401
from rushlight.nn import grad  # noqa: F401
from rushlight.nn._masks import _canonical_mask, _mha_shape_check, _none_or_dtype  # noqa: F401
from rushlight.nn._scaled import ScalingType, SwizzleType, scaled_grouped_mm, scaled_mm  # noqa: F401
from rushlight.ops import NAMESPACES

if TYPE_CHECKING:
    from rushlight.stubs.functional import *  # noqa: F403

__all__ = sorted(NAMESPACES["nn.functional"])  # noqa: PLE0605
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
globals().update(NAMESPACES["nn.functional"])


if not TYPE_CHECKING:  # to a checker, a name that is in no list is an error

    def __getattr__(name: str) -> Any:
        """A function that was published after this module was loaded."""
        try:
            return NAMESPACES["nn.functional"][name]
        except KeyError:
            raise AttributeError(f"module 'rushlight.nn.functional' has no attribute {name!r}") from None
