"""How the processes of a group reach each other: arrays go in, and requests that fill arrays come out.

Arrays are C-contiguous and of dtypes that the channel can add up; `wire` makes such of tensors.  Every method begins an
operation and returns its request, or None where it is done: see `work`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.distributed import mpi
from rushlight.distributed.meeting import link


class Received:
    """Bytes that this process has received at least, by operation: what it needs of others, however MPI brings it.

    An all-reduce counts as what a reduce-scatter and an all-gather bring, 2 (n - 1) / n of its bytes.  Messages that arrive
    are counted when they are asked for.
    """

    def __init__(self) -> None:
        self.bytes: dict[str, float] = {}

    def add(self, name: str, count: float) -> None:
        """Count bytes."""
        self.bytes[name] = self.bytes.get(name, 0) + count

    def total(self) -> float:
        """The bytes of all operations."""
        return sum(self.bytes.values())


received = Received()


class Alone:
    """The channel of a group of one: sums have one term, copies are of itself."""

    rank, size = 0, 1

    def all_reduce(self, x: Array, op: str) -> Any:
        """Replace `x` by its sum (or what `op` says) over the processes."""

    def reduce(self, x: Array, op: str, root: int) -> Any:
        """As `all_reduce`, on process `root` alone."""

    def broadcast(self, x: Array, root: int) -> Any:
        """Replace `x` by that of process `root`."""

    def all_gather(self, out: Array, x: Array) -> Any:
        """Put the arrays of all processes one behind the other.  x: (n,) -> out: (size * n,)"""
        out.reshape(-1)[:] = x.reshape(-1)

    def gather(self, out: Array | None, x: Array, root: int) -> Any:
        """As `all_gather`, on process `root` alone."""
        assert out is not None
        self.all_gather(out, x)

    def scatter(self, out: Array, x: Array | None, root: int) -> Any:
        """Give each process its part of the array of process `root`.  x: (size * n,) -> out: (n,)"""
        assert x is not None
        self.all_gather(out, x)

    def reduce_scatter(self, out: Array, x: Array, op: str) -> Any:
        """Give each process its part of the sum.  x: (size * n,) -> out: (n,)"""
        self.all_gather(out, x)

    def all_gather_v(self, out: Array, x: Array, counts: Sequence[int]) -> Any:
        """As `all_gather`, of arrays that differ in size.  counts: elements of each process's."""
        self.all_gather(out, x)

    def reduce_scatter_v(self, out: Array, x: Array, counts: Sequence[int], op: str) -> Any:
        """As `reduce_scatter`, in parts that differ in size.  counts: elements of each process's."""
        self.all_gather(out, x)

    def all_to_all(self, out: Array, x: Array, out_counts: Sequence[int], counts: Sequence[int]) -> Any:
        """Send each process its part; counts: elements to, out_counts: from each."""
        self.all_gather(out, x)

    def barrier(self) -> Any:
        """Done when all processes have called it."""

    def part(self, ranks: Sequence[int], tag: int) -> Any:
        """The channel among some processes, which all call this; None on the others."""
        return Alone()

    def close(self) -> None:
        """Give back what it holds."""


class Imagined(Alone):
    """The channel of a process that is told of others which are not there: nothing is sent, sums are what this one gives, and where
    things are gathered all have what it has."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size, self._sender = rank, size, 0

    def all_gather(self, out: Array, x: Array) -> Any:
        """As `Alone.all_gather`: the same of each."""
        out.reshape(self.size, -1)[:] = x.reshape(-1)

    def gather(self, out: Array | None, x: Array, root: int) -> Any:
        """As `Alone.gather`."""
        if out is not None:
            self.all_gather(out, x)

    def scatter(self, out: Array, x: Array | None, root: int) -> Any:
        """As `Alone.scatter`; what no process gives is as it was."""
        if x is not None:
            out.reshape(-1)[:] = x.reshape(self.size, -1)[self.rank]

    def reduce_scatter(self, out: Array, x: Array, op: str) -> Any:
        """As `Alone.reduce_scatter`: this process's part."""
        out.reshape(-1)[:] = x.reshape(self.size, -1)[self.rank]

    def all_gather_v(self, out: Array, x: Array, counts: Sequence[int]) -> Any:
        """As `Alone.all_gather_v`: the places of others stay as they are."""
        start = sum(counts[: self.rank])
        out.reshape(-1)[start : start + counts[self.rank]] = x.reshape(-1)

    def reduce_scatter_v(self, out: Array, x: Array, counts: Sequence[int], op: str) -> Any:
        """As `Alone.reduce_scatter_v`: this process's part."""
        start = sum(counts[: self.rank])
        out.reshape(-1)[:] = x.reshape(-1)[start : start + counts[self.rank]]

    def all_to_all(self, out: Array, x: Array, out_counts: Sequence[int], counts: Sequence[int]) -> Any:
        """As `Alone.all_to_all`: each place has as much of what this process gives as there is room."""
        flat = out.reshape(-1)
        flat[:] = np.resize(x.reshape(-1), flat.size) if x.size else flat

    def send(self, x: Array, peer: int, tag: int) -> Any:
        """Nothing."""

    def receive(self, x: Array, peer: int | None, tag: int) -> Any:
        """Nothing: the array stays as it is."""
        self._sender = 0 if peer is None else peer

    def status(self) -> Any:
        """Of the last message."""
        return self

    def Get_source(self) -> int:
        """Whose message it was to be."""
        return self._sender

    def part(self, ranks: Sequence[int], tag: int) -> Any:
        """As `Alone.part`."""
        return Imagined(list(ranks).index(self.rank), len(ranks)) if self.rank in ranks else None


class Several:
    """The channel of a group of processes that an MPI communicator joins."""

    def __init__(self, communicator: Any) -> None:
        self.comm = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        self._link = link.current()
        self._peers = self._among_all()

    def _among_all(self) -> list[int]:
        """The numbers of its processes among all."""
        if self._link is None:
            return []
        every = mpi.library().COMM_WORLD.Get_group()
        return list(self.comm.Get_group().Translate_ranks(None, every))

    def _begun(self, request: Any, peer: int | None = None) -> Any:
        """A request, which is watched where processes meet without a launcher, that would end them.  peer: all if None"""
        if self._link is None:
            return request
        return link.Watched(request, self._link, self._peers if peer is None else [self._peers[peer]])

    def _op(self, op: object, x: Array) -> object:
        """MPI's operation of a name; one of our own as it is, and where numbers may be NaN."""
        if isinstance(op, str) and op in EXTREME and x.dtype.kind == "f":
            return extreme(op, x.dtype)
        return getattr(mpi.library(), op) if isinstance(op, str) else op

    def all_reduce(self, x: Array, op: str) -> Any:
        """As `Alone.all_reduce`."""
        received.add("all_reduce", 2 * x.nbytes * (self.size - 1) / self.size)
        return self._begun(self.comm.Iallreduce(mpi.library().IN_PLACE, x, self._op(op, x)))

    def reduce(self, x: Array, op: str, root: int) -> Any:
        """As `Alone.reduce`."""
        received.add("reduce", x.nbytes * (self.size - 1) / self.size)
        if self.rank == root:
            return self._begun(self.comm.Ireduce(mpi.library().IN_PLACE, x, self._op(op, x), root))
        return self._begun(self.comm.Ireduce(x, None, self._op(op, x), root))

    def broadcast(self, x: Array, root: int) -> Any:
        """As `Alone.broadcast`."""
        received.add("broadcast", x.nbytes * (self.rank != root))
        return self._begun(self.comm.Ibcast(x, root))

    def all_gather(self, out: Array, x: Array) -> Any:
        """As `Alone.all_gather`."""
        received.add("all_gather", x.nbytes * (self.size - 1))
        return self._begun(self.comm.Iallgather(x, out))

    def gather(self, out: Array | None, x: Array, root: int) -> Any:
        """As `Alone.gather`."""
        received.add("gather", x.nbytes * (self.size - 1) * (self.rank == root))
        return self._begun(self.comm.Igather(x, out, root))

    def scatter(self, out: Array, x: Array | None, root: int) -> Any:
        """As `Alone.scatter`."""
        received.add("scatter", out.nbytes * (self.rank != root))
        return self._begun(self.comm.Iscatter(x, out, root))

    def reduce_scatter(self, out: Array, x: Array, op: str) -> Any:
        """As `Alone.reduce_scatter`."""
        received.add("reduce_scatter", out.nbytes * (self.size - 1))
        return self._begun(self.comm.Ireduce_scatter_block(x, out, self._op(op, x)))

    def all_gather_v(self, out: Array, x: Array, counts: Sequence[int]) -> Any:
        """As `Alone.all_gather_v`."""
        received.add("all_gather", out.nbytes - x.nbytes)
        return self._begun(self.comm.Iallgatherv(x, [out, counts]))

    def reduce_scatter_v(self, out: Array, x: Array, counts: Sequence[int], op: str) -> Any:
        """As `Alone.reduce_scatter_v`."""
        received.add("reduce_scatter", out.nbytes * (self.size - 1))
        return self._begun(self.comm.Ireduce_scatter(x, out, counts, self._op(op, x)))

    def all_to_all(self, out: Array, x: Array, out_counts: Sequence[int], counts: Sequence[int]) -> Any:
        """As `Alone.all_to_all`: a message to and from each.  (MPICH 5.0.2's Ialltoallv does not end where counts are 0.)"""
        given, taken = np.split(x.reshape(-1), np.cumsum(counts)), np.split(out.reshape(-1), np.cumsum(out_counts))
        taken[self.rank][...] = given[self.rank]
        others = [r for r in range(self.size) if r != self.rank]
        received.add("all_to_all", sum(taken[r].nbytes for r in others))
        coming = [self.comm.Irecv(taken[r], r, ALL_TO_ALL) for r in others if out_counts[r]]
        return self._begun(Together(coming + [self.comm.Isend(given[r], r, ALL_TO_ALL) for r in others if counts[r]]))

    def barrier(self) -> Any:
        """As `Alone.barrier`."""
        return self._begun(self.comm.Ibarrier())

    def send(self, x: Array, peer: int, tag: int) -> Any:
        """Send an array to a process."""
        return self._begun(self.comm.Isend(x, peer, tag), peer)

    def receive(self, x: Array, peer: int | None, tag: int) -> Any:
        """Fill an array with what a process, or any, sends."""
        received.add("messages", x.nbytes)
        return self._begun(self.comm.Irecv(x, mpi.library().ANY_SOURCE if peer is None else peer, tag), peer)

    def status(self) -> Any:
        """Where a request says from whom its message came."""
        return mpi.library().Status()

    def part(self, ranks: Sequence[int], tag: int) -> Any:
        """As `Alone.part`."""
        if self.rank not in ranks:
            return None
        chosen = self.comm.Get_group().Incl(list(ranks))
        return Several(self.comm.Create_group(chosen, tag))

    def close(self) -> None:
        """As `Alone.close`; what is asked of it after that raises ValueError."""
        self.comm.Free()
        self.comm = Freed()


class Freed:
    """In the place of a communicator that has been given back, which MPI would end the process for."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ValueError("Invalid process group specified: destroy_process_group has given this one back")


EXTREME = {"MAX": np.maximum, "MIN": np.minimum}


@functools.cache
def extreme(name: str, dtype: Any) -> Any:
    """The largest or least of numbers, NaN where one is: MPI's own leaves it to the order whether processes see that, each another."""

    def combine(given: Any, into: Any, kind: object) -> None:
        out = np.frombuffer(into, dtype)
        EXTREME[name](out, np.frombuffer(given, dtype), out=out)

    return mpi.library().Op.Create(combine, commute=True)


ALL_TO_ALL = 32_002  # the tag of its messages


class Together:
    """Several requests as one."""

    def __init__(self, requests: list[Any]) -> None:
        self.requests = requests

    def Test(self, status: object = None) -> bool:
        """Whether all are done."""
        return bool(mpi.library().Request.Testall(self.requests))


def world() -> Several:
    """The channel among all processes that MPI knows, apart from what the script itself sends by MPI."""
    every = mpi.library().COMM_WORLD.Dup()  # which all of them take part in
    mpi.unname()
    return Several(every)
