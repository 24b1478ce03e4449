"""The deprecated arguments `size_average` and `reduce` of losses."""

from __future__ import annotations

from rushlight.basics.caller import warn


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum".  Raises ValueError for others."""
    known = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}
    if reduction not in known:
        raise ValueError(f"{reduction} is not a valid value for reduction: use 'none', 'mean' or 'sum'")
    return known[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The `reduction` that the deprecated arguments mean; None stands for True."""
    average = size_average is None or size_average
    reduced = reduce is None or reduce
    reduction = ("mean" if average else "sum") if reduced else "none"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction
