"""Datapipes: datasets that are chained by functions, one object after another (`iter`) or by index (`map`)."""

from rushlight.utils.data.datapipes import iter, map

__all__ = ["iter", "map"]
