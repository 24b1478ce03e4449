"""``torchrun --nnodes``: one command on each of several machines starts its processes, which meet by an address."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight.distributed.errors import DistNetworkError
from rushlight.distributed.stores import TCPStore

__all__ = ["count", "start"]

MEETING = timedelta(minutes=10)  # how long machines are waited for
GRACE = 5.0  # seconds until processes that were asked to end are killed
MPI = ("PMI_", "PMIX_", "OMPI_")  # what srun says to the one process of a machine, which its processes are not
PORT = 29400  # of an endpoint that says none


def count(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """The number of machines; exits with status 2 for what is none, and for what is not done with several."""
    least, _, most = given.nnodes.partition(":")
    if not least.isdigit() or not int(least) or (most or least) != least:
        parser.error(f"--nnodes: expected one number of machines, which does not change, got {given.nnodes}")
    if int(least) > 1 and given.max_restarts != "0":
        parser.error(f"--max-restarts {given.max_restarts}: processes of several machines are not started again")
    if int(least) > 1 and given.rdzv_backend not in ("", "static", "c10d"):
        parser.error(f"--rdzv-backend: expected static or c10d, got {given.rdzv_backend}")
    return int(least)


def start(given: argparse.Namespace, nodes: int, program: Sequence[str]) -> int:
    """Start this machine's processes and wait for them; the exit status is that of the first that fails."""
    node, address, port, _store = meeting(given)
    if not 0 <= node < nodes:
        print(f"torchrun: expected --node-rank below --nnodes {nodes}, got {node}", file=sys.stderr)
        return 2
    said = {
        "MASTER_ADDR": address, "MASTER_PORT": port, "WORLD_SIZE": nodes * given.count, "LOCAL_WORLD_SIZE": given.count,
        "GROUP_RANK": node, "GROUP_WORLD_SIZE": nodes, "ROLE_WORLD_SIZE": nodes * given.count, "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", max((os.cpu_count() or 1) // given.count, 1)),
    }  # fmt: skip
    given_here = {name: x for name, x in os.environ.items() if not name.startswith(MPI)}
    running = []
    for local in range(given.count):
        rank = node * given.count + local
        own = {**said, "RANK": rank, "ROLE_RANK": rank, "LOCAL_RANK": local}
        running.append(subprocess.Popen(program, env={**given_here, **{name: str(x) for name, x in own.items()}}))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return waited(running)
    finally:
        end(running)


def meeting(given: argparse.Namespace) -> tuple[int, str, int, Any]:
    """The number of this machine, and where the processes meet; the store by which machines do is to be kept meanwhile."""
    if given.rdzv_backend != "c10d":
        return int(given.node_rank), given.master_addr, int(given.master_port), None
    host, _, number = (
        given.rdzv_endpoint.rpartition(":") if ":" in given.rdzv_endpoint else (given.rdzv_endpoint, "", PORT)
    )
    store = listening(host, int(number)) if here(host) else None
    if store is None:
        store = TCPStore(host, int(number), None, False, MEETING)
        return store.add("machines", 1), host, int(store.get("port")), store
    with socket.create_server(("", 0)) as listener:
        store.set("port", str(listener.getsockname()[1]))
    return 0, host, int(store.get("port")), store


def listening(host: str, port: int) -> TCPStore | None:
    """The store of the first machine; None where another command of this one has it."""
    with contextlib.suppress(DistNetworkError):
        return TCPStore(host, port, None, True, MEETING)
    return None


def here(host: str) -> bool:
    """Whether a name is of this machine.  Raises OSError for a name that nobody knows."""
    address = socket.gethostbyname(host or "localhost")
    with contextlib.suppress(OSError), socket.create_server((address, 0)):
        return True
    return False


def waited(running: list[subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended well, or one has not: the status of that one."""
    while True:
        found = [process.poll() for process in running]
        failed = next(((i, status) for i, status in enumerate(found) if status), None)
        if failed is not None:
            status = 128 - failed[1] if failed[1] < 0 else failed[1]
            print(
                f"torchrun: process {failed[0]} of this machine ended with status {status}; the others are ended.",
                file=sys.stderr,
            )
            return status
        if all(status == 0 for status in found):
            return 0
        time.sleep(0.05)


def end(running: list[subprocess.Popen[bytes]]) -> None:
    """End those that still run: first they are asked to."""
    for process in running:
        process.terminate()
    until = time.monotonic() + GRACE
    for process in running:
        try:
            process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
