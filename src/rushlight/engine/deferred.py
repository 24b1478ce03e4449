"""A gradient that is no array yet, on its way to the only node that can do without the array."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import modes


class Deferred:
    """Stands for an array of this shape and dtype.

    A run hands it on as it is to a node whose plan `takes_deferred`, where nothing else arrives and nobody looks; every
    other edge gets the array.
    """

    __slots__ = ("dtype", "shape")
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def array(self) -> Array:
        """The gradient in memory."""
        raise NotImplementedError

    def goes_to(self, edge: Any, first: bool) -> bool:
        """Whether it arrives as it is.  first: nothing has arrived there."""
        run, plan = modes.run, getattr(edge, "plan", None)
        if run is None or not first or plan is None or not plan.takes_deferred or edge.extra is not None:
            return False
        if run.looks or run.create or modes.anomaly is not None or edge in run.ends or edge.count != 1:
            return False
        return bool(run.records[edge][0] == 1 and edge.shape == self.shape and edge.dtype == self.dtype)

    def arriving(self, edge: object, first: bool) -> Array | Deferred:
        """What arrives at an edge: itself, or the array."""
        return self if self.goes_to(edge, first) else self.array()
