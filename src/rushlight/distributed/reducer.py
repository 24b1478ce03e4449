"""Averaging gradients over processes while the backward pass still computes others.

Parameters are dealt into buckets in the order in which their gradients come.  A gradient is divided by the number of processes
on its way into the bucket, and a `.grad` that is new becomes a part of it: nothing is copied back.  A bucket whose gradients are
all there is sent on its way, the buckets in one order on all processes; what has arrived is in `.grad`, and only then do the
other hooks of its parameters run: an optimizer in backward steps with the mean, bucket by bucket, and frees it (Li et al.,
PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020).
"""

from __future__ import annotations

import enum
import importlib
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from rushlight.basics import groups
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import ReduceOp, all_reduce, broadcast
from rushlight.distributed.objects import all_gather_object, broadcast_object_list
from rushlight.engine.accumulate import LATER, post_hook, resumed
from rushlight.engine.run import queue_callback
from rushlight.futures import Future
from rushlight.sparse import construct
from rushlight.storage import bump, settle
from rushlight.tensor import Tensor, wrap

__all__ = ["BuiltinCommHookType", "GradBucket", "Ready", "Reducer"]


class GradBucket:
    """What a communication hook gets: gradients of some parameters, one behind the other in one tensor."""

    def __init__(self, index: int, buffer: Tensor, params: Sequence[Tensor], last: bool) -> None:
        self._index, self._buffer, self._params, self._last = index, buffer, list(params), last

    def index(self) -> int:
        """Which bucket it is: 0 comes first."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients.  (n,)"""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another tensor in the place of the gradients.  buffer: (n,)"""
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return self._params

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        parts = self._buffer.split([p.numel() for p in self._params])
        return [part.view(p.shape) for part, p in zip(parts, self._params, strict=True)]

    def is_last(self) -> bool:
        """Whether no bucket follows."""
        return self._last


class Bucket:
    """Parameters whose gradients travel together.  flat: the gradients, while they are collected and on their way."""

    def __init__(self, index: int, params: Sequence[Tensor]) -> None:
        self.index, self.params = index, list(params)
        ends = np.cumsum([p.numel() for p in self.params]).tolist()
        self.places = {id(p): slice(end - p.numel(), end) for p, end in zip(self.params, ends, strict=True)}
        self.size, self.came = ends[-1], set[int]()
        self.flat: Any = None
        self.arrived: Any = None  # waits for the mean and returns it
        self.narrow = self.params[0].itemsize == 2  # then sums are divided, not what is added

    def buffer(self) -> Tensor:
        """The gradients as a tensor."""
        return wrap(self.flat)

    def zero(self) -> None:
        """Have gradients of 0."""
        self.flat = np.zeros(self.size, self.params[0]._held.dtype)

    def take(self, param: Tensor, count: int, came: bool, move: bool) -> None:
        """Collect the gradient of a parameter divided by `count`, or 0 where it has none.

        came: whether it is of this pass; then that of a bucket of one is taken as it is.  move: whether `.grad` becomes the part
        of the bucket that it is copied to.
        """
        self.came.add(id(param))
        grad: Any = None if param._grad is None else param._grad._array
        if came and len(self.params) == 1 and grad.flags.c_contiguous:
            self.flat = part = grad.reshape(-1)
        else:
            if self.flat is None:
                self.flat = np.empty(self.size, self.params[0]._held.dtype)
            part = self.flat[self.places[id(param)]].reshape(param.shape)
            if move:  # here, so that what it was is freed as soon as it is copied
                param._grad = wrap(part)
        if grad is None:
            part[...] = 0
        elif count != 1:
            np.divide(grad.reshape(part.shape), count, out=part)
        elif not np.may_share_memory(part, grad):
            part[...] = grad

    def full(self) -> bool:
        """Whether all gradients have come."""
        return len(self.came) == len(self.params)

    def clear(self) -> None:
        """Forget the gradients."""
        self.came.clear()
        self.flat = self.arrived = None


class SparseBucket(Bucket):
    """One parameter whose gradients are sparse, which travel as such."""

    def __init__(self, index: int, params: Sequence[Tensor]) -> None:
        super().__init__(index, params)
        self.narrow = False

    def buffer(self) -> Tensor:
        found: Tensor = self.flat
        return found

    def zero(self) -> None:
        self.flat = construct.sparse_coo_tensor(size=self.params[0].shape, dtype=self.params[0].dtype)

    def take(self, param: Tensor, count: int, came: bool, move: bool) -> None:
        """Keep the gradient divided by `count`, or nothing at no place."""
        self.came.add(id(param))
        grad: Any = param._grad
        if grad is None:
            self.zero()
        else:
            self.flat = grad.coalesce() / count


def replaceable(param: Tensor) -> bool:
    """Whether nobody would see that another tensor takes the place of a gradient: the engine has just made it."""
    return param._fresh and param._held.flags.c_contiguous


def dealt(params: Sequence[Tensor], caps: Sequence[int], sparse: Collection[int] = ()) -> list[Bucket]:
    """Buckets of one dtype each, in the order of the parameters.

    caps: bytes of the first, and of those that follow it; sparse: parameters with sparse gradients, by id, which travel alone.
    """
    lists: list[list[Tensor]] = []
    room = 0
    for p in params:
        if not lists or p.nbytes > room or p.dtype is not lists[-1][0].dtype or id(p) in sparse:
            room = max(caps[min(len(lists), len(caps) - 1)], p.nbytes)
            lists.append([])
        lists[-1].append(p)
        room = 0 if id(p) in sparse else room - p.nbytes
    return [(SparseBucket if id(some[0]) in sparse else Bucket)(i, some) for i, some in enumerate(lists)]


class Ready:
    """The hook of parameters: calls `owner.ready(param)` as long as there is an owner, which holds the parameters itself."""

    defers = True
    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = weakref.ref(owner)

    def __call__(self, param: Tensor) -> Any:
        owner = self.owner()
        return None if owner is None else owner.ready(param)


class Reducer:
    """Averages the gradients of `params` (by name) over a group, from hooks of theirs.

    caps: bytes of buckets, see `dealt`; unused: whether parameters may get no gradient on some processes; views:
    whether `.grad` becomes a view of its bucket; sparse: parameters whose gradients are sparse, by id.
    """

    def __init__(
        self, named: Sequence[tuple[str, Tensor]], group: ProcessGroup, caps: Sequence[int], unused: bool, views: bool,
        sparse: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.names = {id(p): name for name, p in named}
        self.group, self.caps, self.unused, self.views, self.sparse = group, caps, unused, views, sparse
        self.active = True  # not so within no_sync
        self.running = False  # whether a backward pass is under way that is averaged
        self.earlier: set[int] = set()  # parameters that got gradients since the last that was
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.state: Any = None
        self.count: int | None = None  # what sums are divided by, where not by the number of processes
        self.order: list[Tensor] = []  # in which gradients came, until buckets follow it
        self.settled = False
        self.deal([p for _, p in reversed(named)])
        self.at_parameters = Ready(self)
        for _, p in named:
            post_hook(p, self.at_parameters, prepend=True)

    def deal(self, params: Sequence[Tensor]) -> None:
        """Make the buckets anew."""
        self.buckets = dealt(params, self.caps, self.sparse)
        self.of = {id(p): bucket for bucket in self.buckets for p in bucket.params}
        self.begun = self.ended = 0  # how many buckets have been sent, and have arrived

    def prepare_for_backward(self, outputs: object = ()) -> None:
        """Average in the next backward pass, whatever `no_sync` was around the forward pass: trainers that accumulate call it."""
        self.active = True

    def ready(self, param: Tensor) -> Any:
        """The hook: a gradient has been accumulated.  The parameter's other hooks run when the mean is there."""
        if not self.active:
            self.earlier.add(id(param))
            return None
        if not self.running:
            self.running = True
            queue_callback(self.finish, outermost=True)
        bucket = self.of[id(param)]
        if param._grad.is_sparse is not isinstance(bucket, SparseBucket):
            raise RuntimeError(
                f"DistributedDataParallel: the gradient of {self.names[id(param)]} is sparse, and its module is no Embedding with sparse=True"
            )
        if not param._grad.is_sparse:
            settle(param._grad._held)
        bucket.take(param, self.divisor(bucket), True, self.views or replaceable(param))
        if not self.settled:
            self.order.append(param)
        self.advance()
        return LATER

    def advance(self) -> None:
        """Send the buckets whose turn it is, and take in those that have arrived."""
        self.begin_full()
        while self.ended < self.begun and self.buckets[self.ended].arrived(wait=False) is not None:
            self.end(self.buckets[self.ended])

    def begin_full(self) -> None:
        """Send the buckets whose turn it is."""
        while self.begun < len(self.buckets) and self.buckets[self.begun].full():
            self.begin(self.buckets[self.begun])
            self.begun += 1

    def divisor(self, bucket: Bucket) -> int:
        """What gradients are divided by before they are sent; those of 16 bits are when they have been added up, in float32."""
        if self.hook is not None or bucket.narrow:
            return 1
        return self.count or self.group.size()

    def begin(self, bucket: Bucket) -> None:
        """Send a bucket on its way."""
        buffer = bucket.buffer()
        if self.hook is not None:
            sent = GradBucket(bucket.index, buffer, bucket.params, bucket.index == len(self.buckets) - 1)
            future = self.hook(self.state, sent)
            if not isinstance(future, Future):
                raise TypeError(
                    f"DistributedDataParallel: a communication hook returns a torch.futures.Future of the tensor, got {type(future).__name__}"
                )
            bucket.arrived = lambda wait: first(future.wait()) if wait or future.done() else None
            return
        later = self.count if self.divisor(bucket) == 1 else None  # what sums are divided by when they are there
        narrow = bucket.narrow
        work = all_reduce(buffer, ReduceOp.AVG if narrow and later is None else ReduceOp.SUM, self.group, async_op=True)
        assert work is not None

        def arrived(wait: bool) -> Tensor | None:
            if not wait and not work.is_completed():
                return None
            work.wait()
            if wait and narrow and later is not None:
                np.divide(buffer._held, later, out=buffer._held)
            return buffer

        bucket.arrived = arrived

    def end(self, bucket: Bucket) -> None:
        """Put the mean of a bucket that has arrived where it belongs, and let the other hooks of its parameters run."""
        assert bucket.arrived is not None
        mean, places, params = bucket.arrived(wait=True), bucket.places, bucket.params
        self.ended += 1
        flat = None if mean.is_sparse else mean._array.reshape(-1)
        bucket.clear()
        for p in params:
            if id(p) in self.idle:
                continue
            if flat is None:
                p._grad = mean
            else:
                self.put(p, flat[places[id(p)]].reshape(p.shape))
            resumed(p, self.at_parameters)

    idle: frozenset[int] | set[int] = frozenset()  # parameters that no process used: their gradients stay as they are

    def put(self, param: Tensor, mean: Any) -> None:
        """Make an array the gradient of a parameter, unless it is its memory already."""
        grad = param._grad
        if grad is not None and np.may_share_memory(grad._held, mean):
            bump(grad)
        elif grad is None or self.views:
            param._grad = wrap(mean)
        else:
            settle(grad._held)
            grad._held[...] = mean
            bump(grad)

    def finish(self) -> None:
        """At the end of the backward pass: what has not come does not come; wait for what is on its way."""
        self.running = False
        missing = [
            p
            for bucket in self.buckets
            for p in bucket.params
            if id(p) not in bucket.came and bucket.index >= self.begun
        ]
        try:
            if missing and not self.unused:
                raise RuntimeError(
                    "DistributedDataParallel: parameters without a gradient on this process, which others would wait for: "
                    f"{', '.join(self.names[id(p)] for p in missing[:5])}{', ...' if len(missing) > 5 else ''}. Pass "
                    "find_unused_parameters=True, or let every output of the module take part in the loss"
                )
            for p in missing:
                self.of[id(p)].take(p, self.divisor(self.of[id(p)]), False, False)
            self.begin_full()  # all of them, on all processes, before the next message
            self.idle = self.unused_everywhere(missing)
            while self.ended < len(self.buckets):
                self.end(self.buckets[self.ended])
        finally:
            self.reset()

    def reset(self) -> None:
        """Begin anew; after the first pass with buckets in the order in which gradients came on the first process."""
        for bucket in self.buckets:
            bucket.clear()
        self.begun = self.ended = 0
        self.idle = frozenset()
        self.earlier.clear()
        if not self.settled:
            self.settled = True
            numbers = {key: i for i, key in enumerate(self.names)}
            mine = [numbers[id(p)] for p in self.order]
            order = [mine if len(mine) == len(numbers) else None]  # of the first, which may not have used all
            broadcast_object_list(order, group_src=0, group=self.group)
            if order[0] is not None:
                by_number = {numbers[id(p)]: p for bucket in self.buckets for p in bucket.params}
                self.deal([by_number[i] for i in order[0]])
        self.order = []

    def shadow(self, keep: bool) -> None:
        """Take part in a backward pass of other processes, with gradients of 0.  keep: whether gradients become the means."""
        for bucket in self.buckets:
            bucket.zero()
            self.begin(bucket)
        params = [p for bucket in self.buckets for p in bucket.params]
        self.idle = self.unused_everywhere(params)
        for bucket in self.buckets:
            mean = bucket.arrived(wait=True)
            for p in bucket.params if keep else ():
                p._grad = (
                    mean
                    if mean.is_sparse
                    else wrap(mean._array.reshape(-1)[bucket.places[id(p)]].reshape(p.shape).copy())
                )
        self.reset()

    def unused_everywhere(self, missing: Sequence[Tensor]) -> set[int]:
        """The parameters, by id, that no process has a gradient of."""
        if not self.unused:
            return set()
        absent = {id(p) for p in missing} - self.earlier
        used = wrap(np.array([key not in absent for key in self.names], np.uint8))
        all_reduce(used, ReduceOp.MAX, self.group)
        return {key for key, here in zip(self.names, used._array, strict=True) if not here}


def first(found: object) -> Any:
    """The tensor that a communication hook's future gives."""
    return found[0] if isinstance(found, (list, tuple)) else found


class BuiltinCommHookType(enum.Enum):
    """Communication hooks that `_register_builtin_comm_hook` takes."""

    ALLREDUCE, FP16_COMPRESS = range(2)


def builtin(kind: BuiltinCommHookType) -> Any:
    """A communication hook by its name."""
    hooks = importlib.import_module("rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks")
    return hooks.fp16_compress_hook if kind is BuiltinCommHookType.FP16_COMPRESS else hooks.allreduce_hook


def same_everywhere(named: Sequence[tuple[str, Tensor]], buffers: Sequence[Tensor], group: ProcessGroup) -> None:
    """Give all processes the parameters and buffers of the first.  Raises RuntimeError, on all, where a process has others."""
    mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in named]
    theirs: list[Any] = [mine]
    broadcast_object_list(theirs, group_src=0, group=group)
    found: list[Any] = [None] * group.size()
    all_gather_object(found, difference(mine, theirs[0]), group)
    other = next((rank for rank, words in enumerate(found) if words), None)
    if other is not None:
        raise RuntimeError(
            f"DistributedDataParallel: rank {other} has {found[other]}: build the same module on all processes"
        )
    for tensor in (*(p for _, p in named), *buffers):
        broadcast(tensor, group=group, group_src=0)


def difference(mine: Sequence[tuple[Any, ...]], first: Sequence[tuple[Any, ...]]) -> str:
    """In what the parameters of a process are others than those of the first: nothing where they are not."""
    if len(mine) != len(first):
        return f"{len(mine)} parameters, rank 0 {len(first)}"
    for (name, *own), (other, *its) in zip(mine, first, strict=True):
        if (name, own) != (other, its):
            return f"the parameter {name} {own} where rank 0 has {other} {its}"
    return ""


groups.averaging.update(Reducer=Reducer, same_everywhere=same_everywhere, broadcast=broadcast, builtin=builtin)
