"""What the processes of a group do together.  In a group of one, sums are their only term and copies are of itself.

All take `group` (default: all processes) and raise ValueError before ``init_process_group``.  With ``async_op=True`` those
on tensors return a :class:`Work` that is done, else None.
"""

from __future__ import annotations

import enum
from typing import Any

from rushlight.basics import groups
from rushlight.tensor import Tensor

__all__ = ["P2POp", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce",
           "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "gather",
           "gather_object", "irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_op", "reduce_scatter",
           "reduce_scatter_tensor", "scatter", "scatter_object_list", "send"]  # fmt: skip


class ReduceOp(enum.Enum):
    """How the tensors of several processes become one; of one process, each leaves the tensor as it is."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's members are of a class inside
reduce_op = ReduceOp


class Work:
    """An operation that is done."""

    def wait(self, timeout: Any = None) -> bool:
        """Wait for it: it is done."""
        return True

    def is_completed(self) -> bool:
        """Whether it is done: yes."""
        return True

    def is_success(self) -> bool:
        """Whether it worked: yes."""
        return True


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def check(name: str, *tensors: Any, root: int = 0) -> None:
    """Raises ValueError without a group, TypeError for what is no tensor, RuntimeError for another process than 0."""
    groups.required()
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    if root != 0:
        raise RuntimeError(f"{name}: there is no process {root}: the group has one, with rank 0")


def isend(tensor: Tensor, dst: int = 0, group: Any = None, tag: int = 0) -> None:
    """Refused with ValueError: there is no other process."""
    send(tensor, dst, group, tag)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> None:
    """Refused with ValueError: there is no other process."""
    recv(tensor, src, group, tag)


class P2POp:
    """A message that `batch_isend_irecv` shall send or take.

    op: `isend` or `irecv`; tensor: what is sent, or where to; peer: the other process.  Raises ValueError for another op.
    """

    def __init__(self, op: Any, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: expected op isend or irecv, got {op!r}")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: Any) -> list[Work]:
    """Refused with ValueError where there is a message: there is no other process."""
    for message in p2p_op_list:
        message.op(message.tensor, message.peer, message.group, message.tag)
    return []


def _copy(name: str, output: Any, input: Any, root: int = 0) -> None:
    """Write a tensor into another with as many elements, outside of any graph."""
    check(name, output, input, root=root)
    if output.numel() != input.numel() or output.dtype is not input.dtype:
        raise ValueError(f"{name}: expected an output of {input.numel()} elements of {input.dtype}, got {output.numel()} "
                         f"of {output.dtype}")  # fmt: skip
    if output is not input:
        output.detach().copy_(input.detach().reshape(output.shape))


def _only(name: str, items: Any) -> Any:
    """The element of a list that has one for each process."""
    if items is None or len(items) != 1:
        raise ValueError(f"{name}: expected a list with one element for each process, 1, got {items and len(items)}")
    return items[0]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here: this one is."""
    check("barrier")
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here: this one is."""
    check("monitored_barrier")


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace the tensor by the sum (or what `op` says) over all processes: itself.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> loss = torch.tensor(3.0)
    >>> torch.distributed.all_reduce(loss, op=torch.distributed.ReduceOp.AVG)
    >>> loss
    tensor(3.)
    >>> torch.distributed.destroy_process_group()
    """
    check("all_reduce", tensor)
    return _done(async_op)


def reduce(
    tensor: Tensor, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """As :func:`all_reduce`, for the process `dst` alone."""
    check("reduce", tensor, root=dst)
    return _done(async_op)


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace the tensor by that of process `src`: itself."""
    check("broadcast", tensor, root=src)
    return _done(async_op)


def all_gather(tensor_list: Any, tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into those of a list."""
    _copy("all_gather", _only("all_gather", tensor_list), tensor)
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes into one, one behind the other."""
    _copy("all_gather_into_tensor", output_tensor, input_tensor)
    return _done(async_op)


def gather(
    tensor: Tensor, gather_list: Any = None, dst: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """As :func:`all_gather`, for the process `dst` alone."""
    _copy("gather", _only("gather", gather_list), tensor, root=dst)
    return _done(async_op)


def scatter(
    tensor: Tensor, scatter_list: Any = None, src: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write this process's tensor of the list of process `src` into `tensor`."""
    _copy("scatter", tensor, _only("scatter", scatter_list), root=src)
    return _done(async_op)


def reduce_scatter(
    output: Tensor, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the sum over all processes of this one's tensor in their lists into `output`."""
    _copy("reduce_scatter", output, _only("reduce_scatter", input_list))
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """As :func:`reduce_scatter`, of the parts of one tensor."""
    _copy("reduce_scatter_tensor", output, input)
    return _done(async_op)


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Send each process its tensor of a list: this one its own."""
    _copy("all_to_all", _only("all_to_all", output_tensor_list), _only("all_to_all", input_tensor_list))
    return _done(async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
                      group: Any = None, async_op: bool = False) -> Work | None:  # fmt: skip
    """Send each process its part of a tensor: this one all of it."""
    _copy("all_to_all_single", output, input)
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all processes into a list."""
    check("all_gather_object")
    _only("all_gather_object", object_list)
    object_list[0] = obj


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None) -> None:
    """As :func:`all_gather_object`, for the process `dst` alone."""
    check("gather_object", root=dst)
    _only("gather_object", object_gather_list)
    object_gather_list[0] = obj  # type: ignore[index]


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Replace the objects of a list by those of process `src`: themselves."""
    check("broadcast_object_list", root=src)


def scatter_object_list(output: list[Any], input: list[Any] | None = None, src: int = 0, group: Any = None) -> None:
    """Put this process's object of the list of process `src` into `output`."""
    check("scatter_object_list", root=src)
    output[0] = _only("scatter_object_list", input)


def send(tensor: Tensor, dst: int = 0, group: Any = None, tag: int = 0) -> None:
    """Refused with ValueError: there is no other process."""
    check("send", tensor)
    raise ValueError(f"send: invalid destination rank {dst}: there is no process but this one")


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> int:
    """Refused with ValueError: there is no other process."""
    check("recv", tensor)
    raise ValueError(f"recv: invalid source rank {src}: there is no process but this one")
