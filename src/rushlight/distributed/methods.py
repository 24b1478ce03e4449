"""The collectives as methods of a group: ``group.allreduce([tensor]).wait()``.

Roots are numbers within the group.  Tensors come alone, or in a list of one: a process has one device here.  All return a `Work`.
What else is to be said may be in an object of options, as PyTorch has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed import collectives, messages
from rushlight.distributed.coalescing import all_reduce_coalesced
from rushlight.distributed.collectives import ReduceOp, Work
from rushlight.tensor import Tensor

__all__ = ["AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
           "GatherOptions", "ProcessGroupGloo", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions"]  # fmt: skip


class _Options:
    """What a collective is asked for besides its tensors."""

    reduceOp = ReduceOp.SUM
    rootRank = rootTensor = 0
    asyncOp = True
    device: Any = None
    device_ids: Any = None
    timeout: timedelta | None = None


class AllToAllOptions(_Options):
    """Those of `alltoall`."""


class AllgatherOptions(_Options):
    """Those of `allgather`."""


class AllreduceOptions(_Options):
    """Those of `allreduce`."""


class AllreduceCoalescedOptions(AllreduceOptions):
    """Those of `allreduce_coalesced`."""


class BarrierOptions(_Options):
    """Those of `barrier`."""


class BroadcastOptions(_Options):
    """Those of `broadcast`."""


class GatherOptions(_Options):
    """Those of `gather`."""


class ReduceOptions(_Options):
    """Those of `reduce`."""


class ReduceScatterOptions(_Options):
    """Those of `reduce_scatter`."""


class ScatterOptions(_Options):
    """Those of `scatter`."""


class ProcessGroupGloo:
    """A backend of PyTorch's, by name alone.  Raises RuntimeError where one is to be made."""

    def __init__(self, *args: object, **options: object) -> NoReturn:
        raise RuntimeError(
            "ProcessGroupGloo: groups are made by torch.distributed.init_process_group and new_group, and messages go by MPI"
        )


def _one(name: str, given: Any) -> Any:
    """What is given alone, or in a list of one.  Raises ValueError for a list of another length."""
    if isinstance(given, Tensor):
        return given
    if not isinstance(given, Sequence) or len(given) != 1:
        raise ValueError(
            f"{name}: expected a tensor, or one in a list, since a process has one device here; got {given!r}"
        )
    return given[0]


def _several(given: Sequence[Any]) -> list[Tensor]:
    """The tensors of a list, which may lie in one of one."""
    return list(given[0] if len(given) == 1 and not isinstance(given[0], Tensor) else given)


def _begun(work: Any, timeout: timedelta | None) -> Work:
    """What a collective returned, which waits as long as was said.  Raises RuntimeError for a process outside of the group."""
    if timeout is not None and timeout:
        work._timeout = timeout.total_seconds()
    found: Work = work
    return found


def _how(given: Any, timeout: timedelta | None) -> tuple[Any, timedelta | None]:
    """The reduction, and how long to wait, of a reduction or of options."""
    return (given.reduceOp, given.timeout) if isinstance(given, _Options) else (given, timeout)


def _where(given: Any, timeout: timedelta | None) -> tuple[int, timedelta | None]:
    """The root, and how long to wait, of a number or of options."""
    return (given.rootRank, given.timeout) if isinstance(given, _Options) else (int(given), timeout)


NO_OPTIONS = _Options()


class _Methods:
    """What is put into the class of groups, which lies below all collectives."""

    def allreduce(
        self: Any, tensors: Any, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *, opts: Any = None
    ) -> Work:
        """As ``torch.distributed.all_reduce``."""
        how, limit = _how(op if opts is None else opts, timeout)
        return _begun(collectives.all_reduce(_one("allreduce", tensors), how, self, True), limit)

    def allreduce_coalesced(self: Any, tensors: Sequence[Tensor], opts: Any = NO_OPTIONS) -> Work:
        """As `allreduce`, of several tensors."""
        return _begun(all_reduce_coalesced(list(tensors), opts.reduceOp, self, True), opts.timeout)

    def broadcast(
        self: Any, tensors: Any, root: Any = NO_OPTIONS, timeout: timedelta | None = None, *, opts: Any = None
    ) -> Work:
        """As ``torch.distributed.broadcast``."""
        number, limit = _where(root if opts is None else opts, timeout)
        return _begun(collectives.broadcast(_one("broadcast", tensors), None, self, True, number), limit)

    def reduce(self: Any, tensors: Any, root: Any = NO_OPTIONS, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *,
               opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.reduce``."""
        said = root if opts is None else opts
        number, limit = _where(said, timeout)
        how = said.reduceOp if isinstance(said, _Options) else op
        return _begun(collectives.reduce(_one("reduce", tensors), None, how, self, True, number), limit)

    def allgather(
        self: Any, output_tensors: Any, input_tensors: Any, timeout: timedelta | None = None, *, opts: Any = NO_OPTIONS
    ) -> Work:
        """As ``torch.distributed.all_gather``."""
        limit = timeout.timeout if isinstance(timeout, _Options) else timeout or opts.timeout
        given = _one("allgather", input_tensors)
        return _begun(collectives.all_gather(_several(output_tensors), given, self, True), limit)

    def _allgather_base(self: Any, output: Tensor, input: Tensor, opts: Any = NO_OPTIONS) -> Work:
        """As ``torch.distributed.all_gather_into_tensor``."""
        return _begun(collectives.all_gather_into_tensor(output, input, self, True), opts.timeout)

    def gather(self: Any, output_tensors: Any, input_tensors: Any, root: Any = NO_OPTIONS, timeout: timedelta | None = None, *,
               opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.gather``."""
        number, limit = _where(root if opts is None else opts, timeout)
        outputs, given = _several(output_tensors) if output_tensors else None, _one("gather", input_tensors)
        return _begun(collectives.gather(given, outputs, None, self, True, number), limit)

    def scatter(self: Any, output_tensors: Any, input_tensors: Any, root: Any = NO_OPTIONS, timeout: timedelta | None = None, *,
                opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.scatter``."""
        number, limit = _where(root if opts is None else opts, timeout)
        inputs, output = _several(input_tensors) if input_tensors else None, _one("scatter", output_tensors)
        return _begun(collectives.scatter(output, inputs, None, self, True, number), limit)

    def reduce_scatter(self: Any, output: Any, input: Any, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *,
                       opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.reduce_scatter``."""
        how, limit = _how(op if opts is None else opts, timeout)
        return _begun(
            collectives.reduce_scatter(_one("reduce_scatter", output), _several(input), how, self, True), limit
        )

    def _reduce_scatter_base(self: Any, output: Tensor, input: Tensor, opts: Any = NO_OPTIONS) -> Work:
        """As ``torch.distributed.reduce_scatter_tensor``."""
        return _begun(collectives.reduce_scatter_tensor(output, input, opts.reduceOp, self, True), opts.timeout)

    def alltoall(
        self: Any, output_tensors: list[Tensor], input_tensors: Sequence[Tensor], opts: Any = NO_OPTIONS
    ) -> Work:
        """As ``torch.distributed.all_to_all``."""
        return _begun(collectives.all_to_all(output_tensors, input_tensors, self, True), opts.timeout)

    def alltoall_base(self: Any, output: Tensor, input: Tensor, output_split_sizes: Sequence[int] = (), input_split_sizes: Sequence[int] = (),
                      opts: Any = NO_OPTIONS) -> Work:  # fmt: skip
        """As ``torch.distributed.all_to_all_single``."""
        found = collectives.all_to_all_single(output, input, output_split_sizes, input_split_sizes, self, True)
        return _begun(found, opts.timeout if isinstance(opts, _Options) else opts)

    def barrier(self: Any, opts: Any = NO_OPTIONS, timeout: timedelta | None = None) -> Work:
        """As ``torch.distributed.barrier``."""
        return _begun(
            collectives.barrier(self, True), timeout or (opts.timeout if isinstance(opts, _Options) else opts)
        )

    def monitored_barrier(self: Any, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """As ``torch.distributed.monitored_barrier``."""
        messages.monitored_barrier(self, timeout, wait_all_ranks)

    def send(self: Any, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """As ``torch.distributed.isend``."""
        return _begun(messages.isend(_one("send", tensors), None, self, tag, dstRank), None)

    def recv(self: Any, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """As ``torch.distributed.irecv``."""
        return _begun(messages.irecv(_one("recv", tensors), None, self, tag, srcRank), None)

    def recv_anysource(self: Any, tensors: Any, tag: int = 0) -> Work:
        """As ``torch.distributed.irecv`` of whichever process sends."""
        return _begun(messages.irecv(_one("recv_anysource", tensors), None, self, tag), None)


for _name, _method in vars(_Methods).items():
    if callable(_method):
        setattr(ProcessGroup, _name, _method)
