"""MPI among processes that were started one by one: they meet by a store, and hear of each other's end."""

from __future__ import annotations

import atexit
import contextlib
import json
import multiprocessing.util
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from rushlight.distributed import mpi
from rushlight.distributed.errors import DistBackendError, DistStoreError
from rushlight.distributed.meeting import server
from rushlight.distributed.meeting.tables import first

__all__ = ["Link", "Watched", "current", "join"]

GRACE = 1.0  # seconds in which what a process sent before its end may still come
LINGER = 5.0  # seconds that a process waits at its end for the others: what it has sent may not be there yet
LOOK = 0.001  # seconds between looks
# Keys of a store: where processes meet, how many are there, and that all are.
MEETING, HERE, ALL = "rushlight/meeting", "rushlight/here", "rushlight/all"
_link: list[Link] = []


def current() -> Link | None:
    """How this process hears of the others, where they were started one by one."""
    return _link[0] if _link and _link[0].process == os.getpid() else None


def join(store: Any, rank: int, size: int, seconds: float) -> None:
    """Let MPI in this process know the others, which call this too.

    store: a value set by one of them is seen by all; seconds: how long is waited for the others.  Raises DistStoreError where
    they do not come, RuntimeError where this MPI cannot meet them, or has met others before.
    """
    if "mpi4py.MPI" in sys.modules:
        met = current()
        if met is None or (met.rank, met.size) != (rank, size):
            raise RuntimeError(
                alone(
                    rank, size, "MPI runs in it already, " + (f"as {met.rank} of {met.size}" if met else "for it alone")
                )
            )
        return
    host, port, number = meet(store, rank, size, seconds)
    os.environ.update(PMI_PORT=f"{host}:{port}", PMI_ID=str(number))
    try:
        library = mpi.library(launched=False)
    finally:
        del os.environ["PMI_PORT"], os.environ["PMI_ID"]
    if library.COMM_WORLD.size != size:
        raise RuntimeError(alone(rank, size, f"{library.get_vendor()[0]} cannot meet others, as MPICH can"))
    _link[:] = [Link((host, port), number, rank, size)]


def alone(rank: int, size: int, why: str) -> str:
    """What is said of a process that cannot reach the others."""
    script = os.path.basename(sys.argv[0]) or "train.py"
    return (
        f"init_process_group: this is process {rank} of {size}, and no MPI launcher started it; {why}. Start all of them with one "
        f"command: rushlight run -n {size} {script} (or mpiexec -n {size} python ...; on several machines: --hosts A,B)"
    )


def meet(store: Any, rank: int, size: int, seconds: float) -> tuple[str, int, int]:
    """Where the meeting is, and the number that proves to it which process this is; returns when all processes are there."""
    if rank == 0:
        store.set(MEETING, json.dumps(opened(store, size, seconds)))
    said(store, MEETING, size, seconds)
    host, port, ids = json.loads(store.get(MEETING))
    if store.add(HERE, 1) == size:
        store.set(ALL, "yes")
    said(store, ALL, size, seconds)
    return host, port, ids[rank]


def said(store: Any, key: str, size: int, seconds: float) -> None:
    """Wait for a key that says that others are there.  Raises DistStoreError."""
    if first(lambda: store.check([key]) or None, seconds) is None:
        raise DistStoreError(
            f"init_process_group: Timed out after {seconds:g} seconds waiting for clients. {store.add(HERE, 0)}/{size} clients joined. "
            "Each process has a rank of its own below world_size, and the same address of rank 0, or the same file?"
        )


def opened(store: Any, size: int, seconds: float) -> tuple[str, int, list[int]]:
    """A meeting, which a process of its own holds: the address of this machine, a port, a number of each process."""
    ids = [secrets.randbelow(1 << 31) for _ in range(size)]
    host = getattr(store, "host", None) or socket.gethostname()  # a file may be of one machine or of several
    here = host.startswith("127.") or host == "localhost"
    words = [sys.executable, "-I", "-S", server.__file__]
    made = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert made.stdin is not None and made.stdout is not None
    made.stdin.write(json.dumps([ids, "127.0.0.1" if here else "", seconds]).encode() + b"\n")
    made.stdin.flush()
    with made.stdout as answer:
        port = int(answer.readline())
    made.returncode = 0  # it is not waited for
    atexit.register(made.stdin.close)  # by which it sees that this process is there
    return host, port, ids


class Link:
    """What this process hears of the others until all of them end."""

    def __init__(self, address: tuple[str, int], number: int, rank: int, size: int) -> None:
        self.rank, self.size, self.process = rank, size, os.getpid()
        self.gone: dict[int, float] = {}  # when this process heard of the end of others
        self.all = self.left = False
        self._lock = threading.Lock()
        self._socket, self._unread, self._looked = socket.create_connection(address), b"", 0.0
        self._socket.sendall(f"cmd=watch pmiid={number}\n".encode())
        self._socket.setblocking(False)
        atexit.register(self.leave)
        multiprocessing.util.Finalize(None, self.leave, exitpriority=10)  # where atexit is not heard

    def look(self) -> None:
        """Hear what there is to hear, in one thread at a time."""
        with self._lock:
            self._looked = time.monotonic()
            *lines, self._unread = (self._unread + self._received()).split(b"\n")
            for line in lines:
                said = server.fields(line.decode())
                self.all = self.all or said["cmd"] == "all"
                if said["cmd"] == "gone":
                    self.gone.setdefault(int(said["rank"]), self._looked)

    def _received(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return self._read() or b"cmd=gone rank=-1\n"  # with whom they meet has gone
        return b""

    def _read(self) -> bytes:
        try:
            return self._socket.recv(1 << 16)
        except ConnectionError:
            return b""

    def lost(self, peers: Iterable[int]) -> bool:
        """Raise DistBackendError where one of some processes has gone some time ago; else False."""
        now = time.monotonic()
        if now - self._looked > LOOK:
            self.look()
        for rank in (*peers, -1):
            if self.gone.get(rank, now) < now - GRACE:
                who = f"rank {rank}" if rank >= 0 else "the process that tells them of each other"
                raise DistBackendError(
                    f"Connection closed by peer: {who} has ended, and is waited for by rank {self.rank}"
                )
        return False

    def leave(self) -> None:
        """Say that this process ends, wait a little for the others, and end MPI if all end."""
        if self.left or os.getpid() != self.process:
            return
        self.left = True
        if sys.exc_info()[0] is None and not self.gone:
            self._wait()
        if self.all:
            mpi.library().Finalize()
        self._socket.close()

    def _wait(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(b"cmd=leave\n")
        first(self._alone_or_together, LINGER)

    def _alone_or_together(self) -> bool | None:
        mpi.library().COMM_WORLD.Iprobe()  # MPI works only when it is asked
        self.look()
        return self.all or bool(self.gone) or None


class Watched:
    """A request that fails where a process that it needs has gone.  peers: their numbers among all"""

    def __init__(self, request: Any, link: Link, peers: Iterable[int]) -> None:
        self.request, self.link, self.peers = request, link, peers

    def Cancel(self) -> None:
        """Give up waiting for it."""
        self.request.Cancel()
        self.request.Free()

    def Test(self, status: object = None) -> bool:
        """Whether it is done.  Raises DistBackendError where it never will be."""
        return bool(self.request.Test(status)) or self.link.lost(self.peers)
