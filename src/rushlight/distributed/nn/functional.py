"""Collectives that gradients pass through: what a process's result depends on in another gets its gradient from there.

All processes of the group call them, forward and backward.  They raise ValueError before ``init_process_group``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight.distributed as dist
from rushlight.autograd.function import Function
from rushlight.basics.groups import ProcessGroup
from rushlight.dispatch.functions import empty_like, stack, zeros_like
from rushlight.distributed.collectives import ReduceOp, check, root_of
from rushlight.distributed.group import member
from rushlight.tensor import Tensor

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


def summed(name: str, op: ReduceOp) -> None:
    """Raise NotImplementedError for a reduction that has no gradient here."""
    if op is not ReduceOp.SUM:
        raise NotImplementedError(f"distributed.nn.functional.{name}: gradients pass through SUM alone, got {op}")


def total(tensor: Tensor, group: ProcessGroup | None, dst: int | None = None) -> Tensor:
    """The sum over the processes, everywhere or on one."""
    found = tensor.detach().clone().contiguous()
    if dst is None:
        dist.all_reduce(found, group=group)
    else:
        dist.reduce(found, group=group, group_dst=dst)
    return found


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: ProcessGroup | None, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        found = tensor.detach().clone().contiguous()
        dist.broadcast(found, group=group, group_src=src)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        found = total(grad, ctx.group, ctx.src)
        return None, None, found if dist.get_rank(ctx.group) == ctx.src else zeros_like(found)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup | None, tensor: Tensor) -> Tensor:
        ctx.group = group
        return total(tensor, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return None, total(grad, ctx.group)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: ProcessGroup | None, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        return total(tensor, group, dst)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        found = grad.detach().clone().contiguous()
        dist.broadcast(found, group=ctx.group, group_src=ctx.dst)
        return None, None, found


class _AllToAll(Function):
    """Parts to each process, and the parts of each: the gradient takes the same ways back."""

    @staticmethod
    def forward(
        ctx: Any, group: ProcessGroup | None, outputs: Sequence[Tensor], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.group, ctx.given = group, [empty_like(t.detach()) for t in tensors]
        found = [empty_like(t.detach()) for t in outputs]
        dist.all_to_all(found, [t.detach().contiguous() for t in tensors], group=group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        found = [empty_like(t) for t in ctx.given]
        dist.all_to_all(found, [g.contiguous() for g in grads], group=ctx.group)
        return None, None, *found


def _copies(tensor: Tensor, group: ProcessGroup | None) -> tuple[Tensor, ...]:
    """The tensors of all processes, by way of each sending its own to all."""
    many = [tensor] * member(group).size()
    return tuple(_AllToAll.apply(group, many, *many))


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Any:
    """The tensor of the process `src`; its gradient there is the sum of those of all."""
    check("broadcast", tensor)
    used = member(group)
    return _Broadcast.apply(root_of("broadcast", used, src, None), used, tensor)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Any, ...]:
    """The tensors of all processes on the process `dst`, zeros on the others."""
    check("gather", tensor)
    used = member(group)
    root, found = root_of("gather", used, dst, None), _copies(tensor, used)
    return found if used.rank() == root else tuple(t * 0 for t in found)


def scatter(tensors: Sequence[Any], src: int = 0, group: ProcessGroup | None = None) -> Any:
    """This process's tensor of the list of process `src`; all processes give lists of the same shapes."""
    check("scatter", *tensors)
    used = member(group)
    root = root_of("scatter", used, src, None)
    if len(tensors) != used.size():
        raise ValueError(f"scatter: expected a tensor for each process, {used.size()}, got {len(tensors)}")
    return _AllToAll.apply(used, [tensors[used.rank()]] * used.size(), *tensors)[root]


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """The sum over processes, on the process `dst`."""
    check("reduce", tensor)
    summed("reduce", op)
    used = member(group)
    return _Reduce.apply(root_of("reduce", used, dst, None), used, tensor)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Any:
    """This process's part of the sum over processes."""
    check("reduce_scatter", output, *input_list)
    summed("reduce_scatter", op)
    used = member(group)
    if len(input_list) != used.size():
        raise ValueError(f"reduce_scatter: expected a tensor for each process, {used.size()}, got {len(input_list)}")
    return stack(_AllToAll.apply(used, [output] * used.size(), *input_list)).sum(0)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Any, ...]:
    """The tensors of all processes; the gradient of this one's is the sum of what each process has for it."""
    check("all_gather", tensor)
    return _copies(tensor, member(group))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Any], group: ProcessGroup | None = None
) -> tuple[Any, ...]:
    """What every process has for this one."""
    check("all_to_all", *output_tensor_list, *input_tensor_list)
    return tuple(_AllToAll.apply(member(group), list(output_tensor_list), *input_tensor_list))


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """The sum over processes; its gradient is the sum of those of all."""
    check("all_reduce", tensor)
    summed("all_reduce", op)
    return _AllReduce.apply(member(group), tensor)
