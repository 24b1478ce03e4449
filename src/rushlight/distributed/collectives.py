"""What the processes of a group do together.

All take `group` (default: all processes) and raise ValueError before ``init_process_group``; processes that are not in the
group return at once.  Ranks are those among all processes, `group_src` and `group_dst` those within the group.  With
``async_op=True`` those on tensors return a `Work`, after whose `wait()` the result is there, else None.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import dtype
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.group import GroupMember, member
from rushlight.distributed.running import nothing, run
from rushlight.distributed.sparse import summed
from rushlight.distributed.wire import Place, moved, readable
from rushlight.distributed.work import Work
from rushlight.tensor import Tensor

__all__ = ["ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_single", "all_reduce",
           "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "reduce", "reduce_op",
           "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter"]  # fmt: skip


class ReduceOp(enum.Enum):
    """How the tensors of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's members are of a class inside
reduce_op = ReduceOp
IN_MPI = {"AVG": "SUM", "PRODUCT": "PROD"}


def check(name: str, *tensors: object) -> None:
    """Raises TypeError for what is no tensor."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"{name}: Invalid function argument. Expected parameter `tensor` of type torch.Tensor but got {type(tensor)} "
                "instead."
            )


def chosen(name: str, op: ReduceOp, dtype: dtype) -> str:
    """The name in MPI of a reduction.  Raises TypeError for what is none.

    Where the numbers have none such: ValueError for complex ones, RuntimeError for others, as PyTorch.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: expected a ReduceOp, got {op!r}")
    if op in (ReduceOp.PREMUL_SUM, ReduceOp.UNUSED):
        raise RuntimeError(f"{name}: {op.name} is not here: multiply the tensor before it is added")
    if dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(
            f"{name} does not support {op.name} of {dtype}: convert the tensor, or choose another ReduceOp"
        )
    if op in BITS and dtype.is_floating_point:
        raise RuntimeError(
            f"{name}: {op.name} of {dtype} is not defined: Invalid scalar type: convert the tensor, or choose another ReduceOp"
        )
    if op is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: AVG of {dtype} is not defined: convert the tensor to a floating-point dtype")
    return IN_MPI.get(op.name, op.name)


def _make_nccl_premul_sum(factor: object) -> ReduceOp:
    """PyTorch's sum of multiples, by name alone: no collective takes it, as with gloo."""
    return ReduceOp.PREMUL_SUM


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether a reduction is one of complex numbers in PyTorch."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def root_of(name: str, group: ProcessGroup, rank: int | None, within: int | None, asked: bool = False) -> int:
    """The number in its group of the process that has, or gets, what is special.  asked: whether it has to be said.

    Raises ValueError where there is none, or where it is said twice.
    """
    one_of(name, rank, within, asked)
    number = group.within(0 if rank is None else rank) if within is None else within
    if not 0 <= number < group.size():
        raise ValueError(f"{name}: there is no process {number}: the group has {group.size()}")
    return number


def one_of(name: str, rank: int | None, within: int | None, asked: bool) -> None:
    """Raise ValueError where a process is said by its number among all and by that in its group, or by neither and is `asked` for."""
    if rank is not None and within is not None:
        raise ValueError(f"{name}: Can't specify both group_rank and global_rank, got {within} and {rank}")
    if asked and rank is None and within is None:
        raise ValueError(f"{name}: Must specify global_rank or group_rank")


class Call(NamedTuple):
    """An operation that begins at the end of a block, in one message with others: see `coalescing`."""

    name: str
    op: Any
    output: Tensor
    input: Tensor


collecting: dict[ProcessGroup, list[Call]] = {}  # what such blocks hold, by group


def collected(group: ProcessGroup, name: str, op: ReduceOp | None, output: Tensor, input: Tensor) -> bool:
    """Whether an operation is left to the end of the block that its group is in."""
    if not collecting or group not in collecting:
        return False
    collecting[group].append(Call(name, op, output, input))
    return True


def averaged(array: Array, op: ReduceOp, group: ProcessGroup) -> None:
    """Make a mean of a sum, where that is what was asked for."""
    if op is ReduceOp.AVG:
        np.divide(array, group.size(), out=array)


def outside(group: ProcessGroup | None) -> bool:
    """Whether this process is not in a group."""
    return group is GroupMember.NON_GROUP_MEMBER


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Wait until all processes are here."""
    if outside(group):
        return None
    return run("barrier", member(group), lambda way: way.barrier(), nothing, async_op)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replace the tensor by the sum (or what `op` says) over all processes.  16-bit numbers are added in float32.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> loss = torch.tensor(3.0)
    >>> torch.distributed.all_reduce(loss, op=torch.distributed.ReduceOp.AVG)
    >>> loss
    tensor(3.)
    >>> torch.distributed.destroy_process_group()
    """
    if outside(group):
        return None
    check("all_reduce", tensor)
    used = member(group)
    if collected(used, "all_reduce", op, tensor, tensor):
        return None
    return _reduced("all_reduce", tensor, op, used, None, async_op)


def _reduced(
    name: str, tensor: Tensor, op: ReduceOp, group: ProcessGroup, root: int | None, async_op: bool
) -> Work | None:
    how = chosen(name, op, tensor.dtype)
    if tensor.is_sparse:
        return summed(name, tensor, how, group, op is ReduceOp.AVG, root, async_op)
    place = Place(tensor, sums=True)

    def after() -> None:
        if root is None or root == group.rank():
            averaged(place.array, op, group)
            place.put()

    def begin(way: Any) -> Any:
        return way.all_reduce(place.wire(), how) if root is None else way.reduce(place.wire(), how, root)

    return run(name, group, begin, after, async_op, tensor, op.name, root)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As `all_reduce`, for the process `dst` alone."""
    if outside(group):
        return None
    check("reduce", tensor)
    used = member(group)
    return _reduced("reduce", tensor, op, used, root_of("reduce", used, dst, group_dst, True), async_op)


def broadcast(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:  # fmt: skip
    """Replace the tensor by that of process `src`."""
    if outside(group):
        return None
    check("broadcast", tensor)
    used = member(group)
    root, place = root_of("broadcast", used, src, group_src, True), Place(tensor)
    after = nothing if used.rank() == root else place.put
    return run("broadcast", used, lambda way: way.broadcast(place.wire(), root), after, async_op, tensor, root)


def _alike(name: str, *tensors: Tensor) -> None:
    """Raise ValueError unless all have one dtype."""
    kinds = dict.fromkeys(str(t.dtype) for t in tensors)
    if len(kinds) > 1:
        raise ValueError(f"{name}: Invalid usage of tensors with different dtypes: found {' and '.join(kinds)}")


def _fits(name: str, output: Tensor, input: Tensor, times: int = 1) -> None:
    """Raise ValueError unless `output` has `times` as many elements as `input`, of its dtype."""
    _alike(name, output, input)
    if output.numel() != input.numel() * times:
        raise ValueError(f"{name}: expected an output of {input.numel() * times} elements of {input.dtype}, got "
                         f"{output.numel()} of {output.dtype}")  # fmt: skip


def _one_each(
    name: str, tensors: Sequence[Tensor] | None, group: ProcessGroup, like: Tensor | None = None
) -> list[Tensor]:
    """A list with a tensor for each process.  Raises ValueError for another number, and for sizes that differ."""
    count = group.size()
    if isinstance(tensors, Tensor):
        raise TypeError(
            f"{name}: Invalid function argument. Expected a parameter of type List[torch.Tensor] but got {type(tensors)} instead."
        )
    if not isinstance(tensors, Sequence) or len(tensors) != count:
        raise ValueError(f"{name}: expected a list with one element for each process, {count}, got "
                         f"{len(tensors) if isinstance(tensors, Sequence) else tensors}")  # fmt: skip
    check(name, *tensors)
    for tensor in tensors:
        if like is not None:
            _fits(name, tensor, like)
    return list(tensors)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes into one, one behind the other."""
    name = "all_gather_into_tensor"
    if outside(group):
        return None
    check(name, output_tensor, input_tensor)
    used = member(group)
    _fits(name, output_tensor, input_tensor, used.size())
    if collected(used, name, None, output_tensor, input_tensor):
        return None
    place, given = Place(output_tensor, read=False), moved(readable(input_tensor))
    return run(name, used, lambda way: way.all_gather(place.wire(), given), place.put, async_op, output_tensor)


all_gather_single = all_gather_into_tensor  # its newer name


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes into those of a list."""
    if outside(group):
        return None
    check("all_gather", tensor)
    used = member(group)
    outputs, given = _one_each("all_gather", tensor_list, used, tensor), moved(readable(tensor))
    found, after = _parts(outputs, given, used.size())
    return run("all_gather", used, lambda way: way.all_gather(found, given), after, async_op, tensor, results=outputs)


def _parts(outputs: Sequence[Tensor], like: Array, count: int) -> tuple[Any, Callable[[], None]]:
    """Room for `count` arrays as `like`, and what copies them into the outputs."""
    found = np.empty((count, *like.shape), like.dtype)

    def after() -> None:
        for part, output in zip(found, outputs, strict=True):
            put(output, part)

    return found, after


def put(output: Tensor, part: Array) -> None:
    """Copy what came over the wire into a tensor."""
    place = Place(output, read=False)
    place.wire().reshape(-1)[...] = part.reshape(-1)
    place.put()


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As `all_gather`, for the process `dst` alone."""
    if outside(group):
        return None
    check("gather", tensor)
    used = member(group)
    root, given = root_of("gather", used, dst, group_dst), moved(readable(tensor))
    found: Any = None
    after = nothing
    if root == used.rank():
        if not gather_list:
            raise ValueError("gather: Argument ``gather_list`` must be specified on destination rank.")
        found, after = _parts(_one_each("gather", gather_list, used, tensor), given, used.size())
    elif gather_list:
        raise ValueError(
            f"gather: Argument ``gather_list`` must NOT be specified on non-destination ranks: this is {used.rank()}"
        )
    written = gather_list if root == used.rank() else ()
    return run(
        "gather", used, lambda way: way.gather(found, given, root), after, async_op, tensor, root, results=written
    )


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write this process's tensor of the list of process `src` into `tensor`."""
    if outside(group):
        return None
    check("scatter", tensor)
    used = member(group)
    root, place = root_of("scatter", used, src, group_src), Place(tensor, read=False)
    given: Any = None
    if root == used.rank():
        if not scatter_list:
            raise ValueError("scatter: Argument ``scatter_list`` must be specified on source rank.")
        given = np.stack([moved(readable(t)) for t in _one_each("scatter", scatter_list, used, tensor)])
    elif scatter_list:
        raise ValueError(
            f"scatter: Argument ``scatter_list`` must NOT be specified on non-source ranks: this is {used.rank()}"
        )
    return run("scatter", used, lambda way: way.scatter(place.wire(), given, root), place.put, async_op, tensor, root)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write the sum over all processes of this one's tensor in their lists into `output`."""
    if outside(group):
        return None
    check("reduce_scatter", output)
    used = member(group)
    inputs = _one_each("reduce_scatter", input_list, used, output)
    return _scattered("reduce_scatter", output, [Place(t, True).array for t in inputs], op, used, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As `reduce_scatter`, of the parts of one tensor."""
    if outside(group):
        return None
    check("reduce_scatter_tensor", output, input)
    used = member(group)
    _fits("reduce_scatter_tensor", input, output, used.size())
    if collected(used, "reduce_scatter_tensor", op, output, input):
        return None
    return _scattered("reduce_scatter_tensor", output, [Place(input, True).array], op, used, async_op)


reduce_scatter_single = reduce_scatter_tensor  # its newer name


def _scattered(
    name: str, output: Tensor, arrays: list[Any], op: ReduceOp, group: ProcessGroup, async_op: bool
) -> Work | None:
    how, place = chosen(name, op, output.dtype), Place(output, sums=True)
    given = np.concatenate([a.reshape(-1) for a in arrays]) if len(arrays) != 1 else arrays[0].reshape(-1)

    def after() -> None:
        averaged(place.array, op, group)
        place.put()

    return run(name, group, lambda way: way.reduce_scatter(place.array, given, how), after, async_op, output, op.name)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its tensor of a list, which may differ in size."""
    if outside(group):
        return None
    used = member(group)
    outputs = _one_each("all_to_all", output_tensor_list, used)
    inputs = _one_each("all_to_all", input_tensor_list, used)
    _alike("all_to_all", *inputs, *outputs)
    counts, expected = [t.numel() for t in inputs], [t.numel() for t in outputs]
    given = np.concatenate([moved(readable(t)).reshape(-1) for t in inputs])
    found = np.empty(sum(expected), given.dtype)

    def after() -> None:
        for output, part in zip(outputs, np.split(found, np.cumsum(expected)[:-1]), strict=True):
            put(output, part)

    return run(
        "all_to_all",
        used,
        lambda way: way.all_to_all(found, given, expected, counts),
        after,
        async_op,
        inputs[0].dtype,
        results=outputs,
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its part of a tensor: equal parts of the first dimension, or those of the sizes given."""
    if outside(group):
        return None
    check("all_to_all_single", output, input)
    _alike("all_to_all_single", output, input)
    used = member(group)
    counts = _split("all_to_all_single", input, input_split_sizes, used.size())
    expected = _split("all_to_all_single", output, output_split_sizes, used.size())
    if used.size() == 1:
        _fits("all_to_all_single", output, input)
    place, given = Place(output, read=False), moved(readable(input))
    return run("all_to_all_single", used, lambda way: way.all_to_all(place.wire(), given, expected, counts), place.put, async_op,
               input.dtype, results=[output])  # fmt: skip


def _split(name: str, tensor: Tensor, sizes: Sequence[int] | None, count: int) -> list[int]:
    """Elements of each process's part of a tensor.  Raises ValueError where the first dimension does not split so."""
    first = tensor.shape[0] if tensor.dim() else 1
    row = tensor.numel() // max(first, 1)
    if not sizes:
        if first % count:
            raise ValueError(
                f"{name}: expected a first dimension that {count} processes divide, got {first}; give split sizes"
            )
        return [tensor.numel() // count] * count
    if len(sizes) != count or sum(sizes) != first:
        raise ValueError(f"{name}: expected {count} sizes whose sum is {first}, got {list(sizes)}")
    return [int(n) * row for n in sizes]
