"""``torch.Tag``: what an operator may be marked with, for tracers and compilers.  Kept and told; nothing here acts on it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

__all__ = ["Tag"]

_NAMES = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy"
)
Tag = enum.Enum("Tag", _NAMES, start=0, module=__name__)  # type: ignore[misc]
Tag.__doc__ = "What an operator may be marked with.  Kept and told; nothing here acts on it."


def as_tags(tags: object) -> tuple[Any, ...]:
    """The tags of an operator, given as one, some or None."""
    return tuple(tags) if isinstance(tags, Iterable) else () if tags is None else (tags,)
