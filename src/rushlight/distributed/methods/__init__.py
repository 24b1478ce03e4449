"""The collectives as methods of a group: ``group.allreduce([tensor]).wait()``.

Roots are numbers within the group.  Tensors come alone, or in a list, mostly of one: a process has one device here.
All return a `Work`. What else is to be said may be in an object of options, as PyTorch has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed import collectives, messages
from rushlight.distributed.coalescing import all_gather_coalesced, all_reduce_coalesced
from rushlight.distributed.collectives import ReduceOp, Work
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.group import reached
from rushlight.distributed.methods import checks
from rushlight.tensor import Tensor

__all__ = ["AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
           "BroadcastOptions", "GatherOptions", "ProcessGroupGloo", "ReduceOptions", "ReduceScatterOptions",
           "ScatterOptions"]  # fmt: skip


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
TOGETHER: dict[ReduceOp, Any] = {
    ReduceOp.SUM: Tensor.add_,
    ReduceOp.AVG: Tensor.add_,
    ReduceOp.PRODUCT: Tensor.mul_,
    ReduceOp.MIN: lambda a, b: a.copy_(a.minimum(b)),
    ReduceOp.MAX: lambda a, b: a.copy_(a.maximum(b)),
    ReduceOp.BAND: Tensor.bitwise_and_,
    ReduceOp.BOR: Tensor.bitwise_or_,
    ReduceOp.BXOR: Tensor.bitwise_xor_,
}


def _copied(work: Work, first: Tensor, others: Sequence[Tensor]) -> Work:
    """What has one result in several tensors of a process."""

    def copy() -> None:
        for tensor in others:
            tensor.copy_(first)

    if others:
        work.tensors = [first, *others]
        work.later(copy)
    return work


class _Methods:
    """What is put into the class of groups, which lies below all collectives."""

    def allreduce(
        self: Any, tensors: Any, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *, opts: Any = None
    ) -> Work:
        """As ``torch.distributed.all_reduce``; of several tensors of a process all become the sum over these too."""
        how, limit = _how(op if opts is None else opts, timeout)
        some = checks.alike("allreduce", checks.listed(tensors))
        collectives.chosen("allreduce", how, some[0].dtype)
        for other in some[1:]:
            TOGETHER[how](some[0], other)
        work = _begun(collectives.all_reduce(some[0], how, self, True), limit)
        return _copied(work, some[0], some[1:])

    def allreduce_coalesced(self: Any, tensors: Sequence[Tensor], opts: Any = NO_OPTIONS) -> Work:
        """As `allreduce`, of several tensors."""
        some = list(tensors)
        if not some:
            raise RuntimeError("allreduce_coalesced: requires non-empty tensor list")
        if len({t.layout for t in some}) > 1:
            raise RuntimeError("allreduce_coalesced: invalid tensor layout at index 1: all have one")
        if len({t.dtype for t in some}) > 1:
            raise RuntimeError("allreduce_coalesced: tensors must all have the same type")
        return _begun(all_reduce_coalesced(some, opts.reduceOp, self, True), opts.timeout)

    def broadcast(
        self: Any, tensors: Any, root: Any = NO_OPTIONS, timeout: timedelta | None = None, *, opts: Any = None
    ) -> Work:
        """As ``torch.distributed.broadcast``; several tensors of a process all become that of the root."""
        said = root if opts is None else opts
        number, limit = _where(said, timeout)
        some = checks.listed(tensors)
        at = checks.special("broadcast", said.rootTensor if isinstance(said, _Options) else 0, len(some))
        first = some.pop(at)
        checks.alike("broadcast", [first, *some])
        checks.root("broadcast", number, self.size())
        work = _begun(collectives.broadcast(first, None, self, True, number), limit)
        return _copied(work, first, some)

    def reduce(self: Any, tensors: Any, root: Any = NO_OPTIONS, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *,
               opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.reduce``."""
        said = root if opts is None else opts
        number, limit = _where(said, timeout)
        how = said.reduceOp if isinstance(said, _Options) else op
        checks.root("reduce", number, self.size())
        checks.special("reduce", said.rootTensor if isinstance(said, _Options) else 0, len(checks.listed(tensors)))
        return _begun(collectives.reduce(checks.single("reduce", tensors), None, how, self, True, number), limit)

    def allgather(
        self: Any, output_tensors: Any, input_tensors: Any, timeout: timedelta | None = None, *, opts: Any = NO_OPTIONS
    ) -> Work:
        """As ``torch.distributed.all_gather``."""
        limit = timeout.timeout if isinstance(timeout, _Options) else timeout or opts.timeout
        inputs = checks.listed(input_tensors)
        outputs = checks.outputs("allgather", output_tensors, inputs, self.size())
        return _begun(collectives.all_gather(outputs, checks.single("allgather", inputs, "input"), self, True), limit)

    def allgather_coalesced(
        self: Any, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = NO_OPTIONS
    ) -> Work:
        """As ``torch.distributed.all_gather_coalesced``."""
        if not input_list:
            raise RuntimeError("allgather_coalesced: requires non-empty input tensor list")
        if len(output_lists) != self.size():
            raise RuntimeError(
                f"allgather_coalesced: output lists should be equal to world size, {self.size()}, got {len(output_lists)}"
            )
        for some in output_lists:
            if len(some) != len(input_list):
                raise RuntimeError(
                    f"allgather_coalesced: invalid output size: expected length {len(input_list)}, got {len(some)}"
                )
            for i, (one, like) in enumerate(zip(some, input_list, strict=True)):
                if one.shape != like.shape:
                    raise RuntimeError(
                        f"allgather_coalesced: invalid size of output tensor at index {i}: {tuple(like.shape)}, {tuple(one.shape)}"
                    )
                checks.alike("allgather_coalesced", [one], like)
        return _begun(all_gather_coalesced(output_lists, input_list, self, True), opts.timeout)

    def _allgather_base(self: Any, output: Tensor, input: Tensor, opts: Any = NO_OPTIONS) -> Work:
        """As ``torch.distributed.all_gather_into_tensor``."""
        return _begun(collectives.all_gather_into_tensor(output, input, self, True), opts.timeout)

    def gather(self: Any, output_tensors: Any, input_tensors: Any, root: Any = NO_OPTIONS, timeout: timedelta | None = None, *,
               opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.gather``."""
        number, limit = _where(root if opts is None else opts, timeout)
        checks.root("gather", number, self.size())
        given, outputs = checks.single("gather", input_tensors, "input"), None
        if number == self.rank():
            outputs = checks.gathers("gather", output_tensors, "output", self.size(), given)
        else:
            checks.empty("gather", output_tensors, "output")
        return _begun(collectives.gather(given, outputs, None, self, True, number), limit)

    def scatter(self: Any, output_tensors: Any, input_tensors: Any, root: Any = NO_OPTIONS, timeout: timedelta | None = None, *,
                opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.scatter``."""
        number, limit = _where(root if opts is None else opts, timeout)
        checks.root("scatter", number, self.size())
        output, inputs = checks.single("scatter", output_tensors, "output"), None
        if number == self.rank():
            inputs = checks.gathers("scatter", input_tensors, "input", self.size(), output)
        else:
            checks.empty("scatter", input_tensors, "input")
        return _begun(collectives.scatter(output, inputs, None, self, True, number), limit)

    def reduce_scatter(self: Any, output: Any, input: Any, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *,
                       opts: Any = None) -> Work:  # fmt: skip
        """As ``torch.distributed.reduce_scatter``."""
        how, limit = _how(op if opts is None else opts, timeout)
        return _begun(
            collectives.reduce_scatter(
                checks.single("reduce_scatter", output, "output"), checks.flat(input), how, self, True
            ),
            limit,
        )

    def _reduce_scatter_base(self: Any, output: Tensor, input: Tensor, opts: Any = NO_OPTIONS) -> Work:
        """As ``torch.distributed.reduce_scatter_tensor``."""
        return _begun(collectives.reduce_scatter_tensor(output, input, opts.reduceOp, self, True), opts.timeout)

    def alltoall(
        self: Any, output_tensors: list[Tensor], input_tensors: Sequence[Tensor], opts: Any = NO_OPTIONS
    ) -> Work:
        """As ``torch.distributed.all_to_all``."""
        return _begun(collectives.all_to_all(output_tensors, input_tensors, self, True), opts.timeout)

    def alltoall_base(
        self: Any,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = NO_OPTIONS,
    ) -> Work:
        """As ``torch.distributed.all_to_all_single``."""
        found = collectives.all_to_all_single(output, input, output_split_sizes, input_split_sizes, self, True)
        return _begun(found, opts.timeout if isinstance(opts, _Options) else opts)

    def _get_sequence_number_for_group(self: Any) -> int:
        """0: operations are not counted."""
        return 0

    def _set_sequence_number_for_group(self: Any) -> None:
        """Nothing: operations are not counted."""

    def shutdown(self: Any) -> None:
        """Nothing: what a group holds is given back by ``torch.distributed.destroy_process_group``."""

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
        return _begun(messages.isend(checks.single("send", tensors), None, self, tag, dstRank), None)

    def recv(self: Any, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """As ``torch.distributed.irecv``."""
        return _begun(messages.irecv(checks.single("recv", tensors), None, self, tag, srcRank), None)

    def recv_anysource(self: Any, tensors: Any, tag: int = 0) -> Work:
        """As ``torch.distributed.irecv`` of whichever process sends."""
        return _begun(messages.irecv(checks.single("recv_anysource", tensors), None, self, tag), None)


for _name, _method in vars(_Methods).items():
    if callable(_method):
        setattr(ProcessGroup, _name, _method)


class _GlooOptions:
    """How a `ProcessGroupGloo` is made: the time that messages may take, and what belongs to gloo and has no effect."""

    def __init__(self) -> None:
        self._timeout: Any = default_pg_timeout
        self._devices: list[object] = []
        self._threads, self.group_name, self.global_ranks_in_group, self.backend = 2, "", list[int](), "gloo"


class ProcessGroupGloo(ProcessGroup):
    """A group that is none of ``init_process_group``'s, whose messages go by MPI all the same.

    store: by which its processes meet; rank, size: which this is, and how many there are: as many as in all groups of this process;
    options: `_Options()`, or a timeout.
    """

    Options = _Options = _GlooOptions

    def __init__(self, store: Any, rank: int, size: int, options: Any = None) -> None:
        given = _GlooOptions()
        if isinstance(options, _GlooOptions):
            given = options
        elif options is not None:
            given._timeout = options
        seconds = messages.seconds(given._timeout)
        way, _ = reached(None, store, rank, size, timedelta(seconds=seconds))
        super().__init__("gloo", way, range(size), seconds, store, given.group_name)
        self.options = given

    @staticmethod
    def create_device(hostname: str = "", interface: str = "", lazy_init: bool = False) -> object:
        """Where gloo would send messages: nothing here."""
        return f"{hostname or interface}"

    @staticmethod
    def create_default_device(lazy_init: bool = False) -> object:
        """As `create_device`."""
        return ""
