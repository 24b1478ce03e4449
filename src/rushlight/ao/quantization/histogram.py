"""The limits of a histogram between which rounding to few steps loses least: what `HistogramObserver` searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.dispatch.named import named

if TYPE_CHECKING:
    from rushlight.ao.quantization.observer import HistogramObserver
    from rushlight.tensor import Tensor

__all__ = ["moved", "searched"]

FINER = 16  # parts of a bin that go to the bins of other limits one by one
STEP = 1e-5  # of all elements, that are given up at either end in one step


def searched(observer: HistogramObserver) -> tuple[Any, Any]:
    """The smallest and the largest value kept: ends are given up as long as the error of rounding falls.

    After the search of norm_minimization.cc of Caffe2: the end that more bins are given up at moves first.
    """
    sums, last = observer.histogram.cumsum(0).numpy(), observer.bins - 1
    total = observer.histogram.sum().item()
    low, high, start, end, least = 0.0, 1.0, 0, last, float("inf")
    while low < high:
        left = min(end, max(start, int(np.searchsorted(sums, np.float32((low + STEP) * total), "left"))))
        right = max(start, min(end, int(np.searchsorted(sums, np.float32((high - STEP) * total), "right")) - 1))
        moved_start, moved_end = start, end
        if left - start > end - right:
            moved_start, low = left, low + STEP
        else:
            moved_end, high = right, high - STEP
        if (moved_start, moved_end) == (start, end):
            continue
        error = lost(observer, moved_start, moved_end)
        if error > least:
            break
        least, start, end = error, moved_start, moved_end
    width = (observer.max_val - observer.min_val) / observer.bins
    return observer.min_val + width * start, observer.min_val + width * (end + 1)


def lost(observer: HistogramObserver, start: int, end: int) -> float:
    """The sum of squares that rounding loses with steps from bin `start` to bin `end`, elements being even within bins."""
    width = (observer.max_val.item() - observer.min_val.item()) / observer.bins
    step = width * (end - start + 1) / observer.dst_nbins
    if step == 0.0:
        return 0.0
    begins = (named.arange(observer.bins) - start) * width
    ends, density = begins + width, observer.histogram / width
    first, final = (
        named.clamp(named.div(x, step, rounding_mode="floor"), 0, observer.dst_nbins - 1) for x in (begins, ends)
    )
    error = squares(begins - (first + 0.5) * step, named.full((observer.bins,), step / 2)) * density
    error = error + (final - first - 1) * (squares(named.tensor(-step / 2), named.tensor(step / 2)) * density)
    error = error + squares(named.tensor(-step / 2), ends - (final * step + step / 2)) * density
    return float(error.sum().item())


def squares(begin: Tensor, end: Tensor) -> Tensor:
    """The integral of x^2 from `begin` to `end`.  (*), (*) -> (*)"""
    return (end * end * end - begin * begin * begin) / 3


def moved(observer: HistogramObserver, low: Tensor, high: Tensor) -> Any:
    """The observer's histogram between wider limits.  -> (bins)"""
    histogram, bins, old_low, old_high = observer.histogram, observer.bins, observer.min_val, observer.max_val
    if old_low == old_high:
        return named.histc(old_low, bins=bins, min=low.item(), max=high.item()) * histogram.sum()
    parts = histogram.repeat_interleave(FINER) / FINER
    size = (old_high - old_low) / (bins * FINER)
    middles = named.linspace(old_low, old_high, bins * FINER + 1)[:-1] + 0.5 * size
    edges = named.linspace(low, high, bins + 1)
    places = named.clamp(named.bucketize(middles, edges, right=True) - 1, 0, bins - 1)
    return named.bincount(places, weights=parts, minlength=bins)
