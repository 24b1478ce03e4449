"""Collectives that gradients pass through.  In a group of one each hands on what it is given."""

from rushlight import absent
from rushlight.distributed.nn import functional
from rushlight.distributed.nn.functional import all_gather, all_reduce, all_to_all, broadcast, gather, reduce, scatter

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "functional", "gather", "reduce", "scatter"]
absent.names(globals(), "rushlight calls no other processes", "RemoteModule")
