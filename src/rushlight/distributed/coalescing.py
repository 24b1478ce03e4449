"""Several collectives as one message: each message has a latency, whatever its size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import Call, ReduceOp, averaged, check, chosen, collecting, outside
from rushlight.distributed.group import member
from rushlight.distributed.running import run
from rushlight.distributed.wire import Place, moved, readable
from rushlight.distributed.work import Work
from rushlight.tensor import Tensor

__all__ = ["all_gather_coalesced", "all_reduce_coalesced"]


def same_dtype(name: str, tensors: Any) -> list[Tensor]:
    """Tensors of a list.  Raises TypeError for what is none, ValueError where there is none or dtypes differ."""
    found = list(tensors)
    check(name, *found)
    if len({t.dtype.to_real() for t in found}) != 1:
        kinds = ", ".join(str(t.dtype) for t in found)
        raise ValueError(f"{name}: expected tensors of one dtype, got {kinds or 'none'}")
    return found


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """As `all_reduce` of each tensor, in one message.  Raises ValueError unless all have one dtype, or are complex numbers of such.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> torch.distributed.all_reduce_coalesced([torch.ones(2), torch.ones(3, 4)])
    >>> torch.distributed.destroy_process_group()
    """
    if outside(group):
        return None
    found, used = same_dtype("all_reduce_coalesced", tensors), member(group)
    hows, places = {chosen("all_reduce", op, t.dtype) for t in found}, [Place(t, sums=True) for t in found]
    flat = np.concatenate([reals(place.array) for place in places])

    def after() -> None:
        averaged(flat, op, used)
        dealt(flat, places)

    return run("all_reduce", used, lambda way: way.all_reduce(flat, *hows), after, async_op, *found, op.name)


def reals(array: Array) -> Array:
    """A contiguous array in one dimension, a complex one as twice as many real numbers: on its memory."""
    return array.reshape(-1).view(array.real.dtype) if array.dtype.kind == "c" else array.reshape(-1)


def dealt(flat: Array, places: Sequence[Place]) -> None:
    """Bring parts of an array into the tensors that they are for.  flat: (sum of elements,)"""
    views = [reals(place.array) for place in places]
    for place, view, at in zip(places, views, parts(views), strict=True):
        view[...] = flat[at]
        place.put()


def parts(arrays: Sequence[Array]) -> list[slice]:
    """Where each of several arrays stands among the elements of all."""
    ends = list(itertools.accumulate(array.size for array in arrays))
    return [slice(end - array.size, end) for array, end in zip(arrays, ends, strict=True)]


def all_gather_coalesced(
    output_tensor_lists: Any,
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As `all_gather` of each tensor, in one message.  output_tensor_lists: for each process a list as the input's.

    Raises ValueError for another number of lists or tensors, and for tensors of another size or dtype than the input's.
    """
    if outside(group):
        return None
    name, used, inputs = "all_gather_coalesced", member(group), list(input_tensor_list)
    check(name, *inputs)
    if len(output_tensor_lists) != used.size():
        raise ValueError(
            f"{name}: expected a list for each process, {used.size()}, got {len(output_tensor_lists)} lists"
        )
    places = [fitting(name, outputs, inputs) for outputs in output_tensor_lists]
    return gathered(name, [octets(readable(t)) for t in inputs], places, used, async_op, inputs)


def fitting(name: str, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Place]:
    """Where what one process sends is written.  Raises ValueError unless each output is as its input."""
    check(name, *outputs)
    shapes, wanted = ([(tuple(t.shape), str(t.dtype)) for t in some] for some in (outputs, inputs))
    if shapes != wanted:
        raise ValueError(f"{name}: expected outputs of {wanted} from each process, got {shapes}")
    return [Place(t, read=False) for t in outputs]


def octets(array: Array) -> Array:
    """A contiguous array as its bytes."""
    return moved(array).reshape(-1).view(np.uint8)


def gathered(name: str, given: Sequence[Array], places: Sequence[Sequence[Place]], group: ProcessGroup, async_op: bool,
             shown: Sequence[Tensor]) -> Work | None:  # fmt: skip
    """Gather bytes of several tensors.  given: the bytes of each; places: for each process where each of its tensors goes"""
    sent = np.concatenate(given)
    found = np.empty((group.size(), sent.size), np.uint8)

    def after() -> None:
        for row, some in zip(found, places, strict=True):
            for place, at in zip(some, parts(given), strict=True):
                octets(place.array)[...] = row[at]
                place.put()

    return run(name, group, lambda way: way.all_gather(found, sent), after, async_op, *shown)


class _CoalescingManager:
    """What began within a ``_coalescing_manager`` block: the handles of its messages, to be waited for."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        """Wait for another operation too."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait until all of them are done."""
        for work in self.works:
            work.wait()


class _coalescing_manager:
    """A block whose `all_reduce`, `all_gather_into_tensor` and `reduce_scatter_tensor` of one group begin at its end.

    Those that follow each other and are of one kind, dtype and reduction are one message.  With ``async_ops=True`` the results
    are there after `wait()` of what the block gives, else behind the block.  Other operations within it go on as they are.
    Raises ValueError where the group is in such a block.
    """

    def __init__(self, group: Any = None, device: Any = None, async_ops: bool = False) -> None:
        self.group, self.async_ops, self.manager = member(group), async_ops, _CoalescingManager()

    def __enter__(self) -> _CoalescingManager:
        if self.group in collecting:
            raise ValueError("_coalescing_manager: the group is in such a block already, whose messages have not begun")
        collecting[self.group] = []
        return self.manager

    def __exit__(self, kind: object, *error: object) -> None:
        calls = collecting.pop(self.group)
        if kind is not None:
            return
        for (name, *_), some in itertools.groupby(calls, lambda call: (call.name, call.op, call.output.dtype)):
            self.manager.append(TOGETHER[name](list(some), self.group))
        if not self.async_ops:
            self.manager.wait()


def _reduced(calls: Sequence[Call], group: ProcessGroup) -> Work | None:
    return all_reduce_coalesced([call.output for call in calls], calls[0].op, group, async_op=True)


def _gathered(calls: Sequence[Call], group: ProcessGroup) -> Work | None:
    """Gather tensors into one each: the bytes of process k are the k-th part of each."""
    inputs, outputs = [call.input for call in calls], [Place(call.output, read=False) for call in calls]
    given = [octets(readable(t)) for t in inputs]
    sent = np.concatenate(given)
    found = np.empty((group.size(), sent.size), np.uint8)

    def after() -> None:
        for place, at in zip(outputs, parts(given), strict=True):
            octets(place.array).reshape(group.size(), -1)[...] = found[:, at]
            place.put()

    return run("all_gather_into_tensor", group, lambda way: way.all_gather(found, sent), after, True, *inputs)


def _scattered(calls: Sequence[Call], group: ProcessGroup) -> Work | None:
    """Reduce tensors and keep a part of each: what process k keeps of all stands together."""
    op, outputs = calls[0].op, [Place(call.output, sums=True) for call in calls]
    how = chosen("reduce_scatter_tensor", op, calls[0].output.dtype)
    given = np.concatenate([reals(Place(call.input, True).array).reshape(group.size(), -1) for call in calls], axis=1)
    found = np.empty(given.shape[1], given.dtype)

    def after() -> None:
        averaged(found, op, group)
        dealt(found, outputs)

    shown = [call.output for call in calls]
    return run("reduce_scatter_tensor", group, lambda way: way.reduce_scatter(found, given.reshape(-1), how), after, True, *shown,
               op.name)  # fmt: skip


TOGETHER: dict[str, Callable[[Sequence[Call], ProcessGroup], Work | None]] = {
    "all_reduce": _reduced,
    "all_gather_into_tensor": _gathered,
    "reduce_scatter_tensor": _scattered,
}
