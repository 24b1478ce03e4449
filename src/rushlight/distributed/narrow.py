"""Sums of 16-bit numbers over processes that travel in 16 bits, each addition rounded: half the bytes of float32."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed import mpi
from rushlight.distributed.debug import compared
from rushlight.distributed.work import Work

__all__ = ["sum_narrow"]


@functools.cache
def addition(dtype: Any) -> Any:
    """MPI's operation that adds numbers of a 16-bit NumPy dtype, which it knows as integers."""

    def add(given: Any, into: Any, kind: object) -> None:
        out = np.frombuffer(into, np.uint16).view(dtype)
        np.add(out.astype(np.float32), np.frombuffer(given, np.uint16).view(dtype), out=out, casting="unsafe")

    return mpi.library().Op.Create(add, commute=True)


def sum_narrow(array: Any, group: ProcessGroup) -> tuple[Any, Work]:
    """Begin to replace an array of 16-bit numbers by its sum over a group.  array: (n,) -> (n,), when the work is done"""
    if group.size() == 1:
        return array, Work()
    compared("sum_narrow", group, (array.dtype, array.size))
    request = group.channel.all_reduce(array.view(np.uint16), addition(array.dtype))
    return array, Work(request, None, f"sum of {array.dtype}", group.timeout)
