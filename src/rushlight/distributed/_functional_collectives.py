"""``torch.distributed._functional_collectives``: collectives that give new tensors, and leave those that they are given as they are.

A result is there when it is returned: nothing has to be waited for.  group: a process group, a `DeviceMesh` of one dimension, a
mesh and the number of its dimension, or the numbers of all processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight.distributed as dist
from rushlight import absent
from rushlight.autograd.function import Function
from rushlight.basics import groups
from rushlight.basics.groups import ProcessGroup
from rushlight.dispatch.functions import cat
from rushlight.distributed.collectives import ReduceOp
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.group import member
from rushlight.tensor import Tensor

__all__ = ["all_gather_into_tensor_coalesced", "all_gather_tensor", "all_gather_tensor_autograd",
           "all_gather_tensor_inplace", "all_reduce", "all_reduce_coalesced", "all_reduce_inplace",
           "all_to_all_inplace", "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor",
           "reduce_scatter_tensor", "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced",
           "reduce_scatter_tensor_inplace", "wait_tensor"]  # fmt: skip


absent.names(
    globals(),
    "a result is there when it is returned: no tensor is one that has to be waited for",
    "AsyncCollectiveTensor",
)


def group_of(group: Any) -> ProcessGroup:
    """The process group that is meant.  Raises ValueError for numbers of some processes alone, TypeError for others."""
    if group is None or isinstance(group, ProcessGroup):
        return member(group)
    if isinstance(group, str) and group in groups.named:
        return groups.named[group]
    if isinstance(group, DeviceMesh):
        return member(group.get_group())
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return member(group[0].get_group(group[1]))
    if isinstance(group, (list, tuple)):
        if sorted(group) != sorted(member(None).ranks):
            raise ValueError(
                f"Invalid group {group}: the numbers of some processes make no group: give one from dist.new_group(ranks)"
            )
        return member(None)
    raise TypeError(
        f"Invalid type for group, must be one of List, Processgroup, DeviceMesh or (DeviceMesh, int), got {type(group)}"
    )


def how(op: str | ReduceOp) -> ReduceOp:
    """A reduction by its name.  Raises ValueError for another name."""
    if isinstance(op, ReduceOp):
        return op
    if op.upper() not in ReduceOp.__members__:
        raise ValueError(
            f"Invalid reduce operation {op}: expected one of {', '.join(x.lower() for x in ReduceOp.__members__)}"
        )
    return ReduceOp[op.upper()]


def fresh(tensor: Tensor) -> Tensor:
    """A copy outside of the graph, in C order."""
    found = tensor.detach()
    return found.contiguous().clone()


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: it is there."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of process `src`."""
    found = fresh(self)
    dist.broadcast(found, src, group_of(group))
    return found


def all_reduce(self: Tensor, reduceOp: str | ReduceOp, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes made one, by "sum", "avg", "product", "min", "max" or bit by bit."""
    found = fresh(self)
    dist.all_reduce(found, how(reduceOp), group_of(group))
    return found


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes one behind the other along a dimension."""
    used, given = group_of(group), fresh(self)
    found = given.new_empty(used.size(), *given.shape)
    dist.all_gather_into_tensor(found, given, used)
    return cat(list(found.unbind(0)), gather_dim)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str | ReduceOp, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """This process's part, along a dimension, of the tensors of all processes made one.  Raises ValueError for parts of several sizes."""
    used = group_of(group)
    if self.shape[scatter_dim] % used.size():
        raise ValueError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]} must be a multiple of group_size {used.size()})"
        )
    given = cat([fresh(part) for part in self.chunk(used.size(), scatter_dim)])
    shape = list(self.shape)
    shape[scatter_dim] //= used.size()
    found = given.new_empty(shape)
    dist.reduce_scatter_tensor(found, given, how(reduceOp), used)
    return found


def all_to_all_single(self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any,
                      tag: str = "") -> Tensor:  # fmt: skip
    """The parts that all processes have for this one, along the first dimension; by default all parts are of one size."""
    shape = list(self.shape)
    if output_split_sizes is not None:
        shape[0] = sum(output_split_sizes)
    found = self.detach().new_empty(shape)
    dist.all_to_all_single(found, fresh(self), output_split_sizes, input_split_sizes, group_of(group))
    return found


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the process whose place in `src_dst` has the number of this one."""
    used = group_of(group)
    sizes = [0] * used.size()
    outgoing, coming = list(sizes), list(sizes)
    outgoing[src_dst[used.rank()]] = coming[list(src_dst).index(used.rank())] = self.numel()
    return all_to_all_single(self.reshape(-1), coming, outgoing, used).reshape(self.shape)


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str | ReduceOp, group: Any, tag: str = "") -> list[Tensor]:
    """As `all_reduce`, of each of a list."""
    return [all_reduce(x, reduceOp, group) for x in self]


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """As `all_gather_tensor` along the first dimension, of each of a list."""
    return [all_gather_tensor(x, 0, group) for x in self]


def reduce_scatter_tensor_coalesced(inputs: Sequence[Tensor], reduceOp: str | ReduceOp, scatter_dim: Sequence[int], group: Any,
                                    tag: str = "") -> list[Tensor]:  # fmt: skip
    """As `reduce_scatter_tensor`, of each of a list along its dimension."""
    return [reduce_scatter_tensor(x, reduceOp, dim, group) for x, dim in zip(inputs, scatter_dim, strict=True)]


class _Gathered(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dim: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return all_gather_tensor(tensor, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return reduce_scatter_tensor(grad, "sum", ctx.dim, ctx.group), None, None


class _Scattered(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: ReduceOp, dim: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group, ctx.parts = dim, group, group.size() if op is ReduceOp.AVG else 1
        return reduce_scatter_tensor(tensor, op, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        found = all_gather_tensor(grad, ctx.dim, ctx.group)
        return found / ctx.parts if ctx.parts > 1 else found, None, None, None


class _Exchanged(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, coming: Any, going: Any, group: ProcessGroup) -> Tensor:
        ctx.coming, ctx.going, ctx.group = coming, going, group
        return all_to_all_single(tensor, coming, going, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return all_to_all_single(grad, ctx.going, ctx.coming, ctx.group), None, None, None


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """As `all_gather_tensor`, with gradients."""
    return _Gathered.apply(self, gather_dim, group_of(group))  # type: ignore[no-any-return]


def reduce_scatter_tensor_autograd(
    self: Tensor, reduceOp: str | ReduceOp, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """As `reduce_scatter_tensor` of sums and means, with gradients.  Raises NotImplementedError for other reductions."""
    op = how(reduceOp)
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(
            f"reduce_scatter_tensor_autograd: gradients pass through sums and means alone, got {reduceOp}"
        )
    return _Scattered.apply(self, op, scatter_dim, group_of(group))  # type: ignore[no-any-return]


def all_to_all_single_autograd(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """As `all_to_all_single`, with gradients."""
    return _Exchanged.apply(self, output_split_sizes, input_split_sizes, group_of(group))  # type: ignore[no-any-return]


def all_gather_tensor_inplace(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False, tag: str = "",
                              gather_dim: int = 0) -> Tensor:  # fmt: skip
    """As `all_gather_tensor`, written into a tensor."""
    return output_tensor.copy_(all_gather_tensor(input_tensor, gather_dim, group))


def reduce_scatter_tensor_inplace(
    output: Tensor,
    input: Tensor,
    op: str | ReduceOp = "sum",
    group: Any = None,
    async_op: bool = False,
    scatter_dim: int = 0,
    tag: str = "",
) -> Tensor:
    """As `reduce_scatter_tensor`, written into a tensor."""
    return output.copy_(reduce_scatter_tensor(input, op, scatter_dim, group))


def all_reduce_inplace(
    tensor: Tensor, op: str | ReduceOp = "sum", group: Any = None, async_op: bool = False, tag: str = ""
) -> Tensor:
    """As `all_reduce`, written into the tensor."""
    return tensor.copy_(all_reduce(tensor, op, group))


def all_to_all_inplace(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
    tag: str = "",
) -> Tensor:
    """As `all_to_all_single`, written into a tensor."""
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes, group))


# By their newer names.
all_gather_single, reduce_scatter_single = all_gather_tensor, reduce_scatter_tensor
all_gather_single_autograd, reduce_scatter_single_autograd = all_gather_tensor_autograd, reduce_scatter_tensor_autograd
all_gather_single_coalesced, reduce_scatter_single_coalesced = (
    all_gather_into_tensor_coalesced,
    reduce_scatter_tensor_coalesced,
)
all_gather_inplace = all_gather_tensor_inplace
__all__ += ["all_gather_inplace", "all_gather_single", "all_gather_single_autograd", "all_gather_single_coalesced",
            "reduce_scatter_single", "reduce_scatter_single_autograd",
            "reduce_scatter_single_coalesced"]  # fmt: skip
