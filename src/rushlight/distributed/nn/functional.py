"""Collectives that gradients pass through, of a group of one.

All raise ValueError before ``init_process_group``, RuntimeError for another process than 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.distributed.collectives import ReduceOp, check

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """The tensor of the process `src`: this one's."""
    check("broadcast", tensor, root=src)
    return tensor.view_as(tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """The tensors of all processes: this one's."""
    check("gather", tensor, root=dst)
    return (tensor.view_as(tensor),)


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """The tensor for this process: the first.  Raises ValueError for another number than one."""
    (tensor,) = tensors
    check("scatter", tensor, root=src)
    return tensor.view_as(tensor)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The sum over processes: of one term."""
    check("reduce", tensor, root=dst)
    return tensor.clone()


def reduce_scatter(output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """This process's part of the sum over processes.  Raises ValueError for another number of tensors than one."""
    (tensor,) = input_list
    check("reduce_scatter", tensor)
    return tensor.clone()


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """The tensors of all processes: this one's."""
    check("all_gather", tensor)
    return (tensor.view_as(tensor),)


def all_to_all(output_tensor_list: Any, input_tensor_list: Sequence[Any], group: Any = None) -> tuple[Any, ...]:
    """What every process has for this one.  Raises ValueError for another number of tensors than one."""
    (tensor,) = input_tensor_list
    check("all_to_all", tensor)
    return (tensor.view_as(tensor),)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The sum over processes: of one term."""
    check("all_reduce", tensor)
    return tensor.clone()
