"""Sparse tensors added up over processes: what each has at some places is brought to all, and added there."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.autograd import no_grad
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.running import nothing, run
from rushlight.distributed.wire import moved, readable
from rushlight.distributed.work import Work
from rushlight.sparse import construct
from rushlight.tensor import Tensor, wrap

__all__ = ["summed"]


def summed(
    name: str, tensor: Tensor, how: str, group: ProcessGroup, mean: bool, root: int | None, async_op: bool
) -> Work | None:
    """Replace a sparse tensor by the sum over all processes, or the mean; on process `root` alone if that is said.

    Raises RuntimeError for another reduction than the sum.  It is done when this returns.
    """
    if how != "SUM":
        raise RuntimeError(
            f"{name}: {how} of a sparse tensor is not defined: unsupported reduction operation: sums and means are"
        )
    given: Any = tensor.detach().coalesce()
    indices, values = (joined(name, t, group) for t in (given.indices().t(), given.values()))
    total: Any = construct.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()
    if root is None or root == group.rank():
        with no_grad():
            tensor.copy_(total / group.size() if mean else total)
    return Work() if async_op else None


def joined(name: str, tensor: Tensor, group: ProcessGroup) -> Any:
    """The rows of all processes, which may differ in number.  (n, *) -> (N, *)"""
    mine = moved(readable(tensor))
    counts = np.empty(group.size(), np.int64)
    run(name, group, lambda way: way.all_gather(counts, np.array([len(mine)])), nothing, False)
    room = np.zeros((int(counts.max()), *mine.shape[1:]), mine.dtype)
    room[: len(mine)] = mine
    found = np.empty((group.size(), *room.shape), room.dtype)
    run(name, group, lambda way: way.all_gather(found, room), nothing, False)
    whole = np.concatenate([part[:n] for part, n in zip(found, counts, strict=True)])
    return wrap(whole.view(tensor._array.dtype))
