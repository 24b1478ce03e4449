"""A table that several processes see: one of them holds it and answers the others, a line for a line."""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight.distributed.errors import DistNetworkError
from rushlight.distributed.meeting import words
from rushlight.distributed.meeting.tables import LocalTable, first

__all__ = ["RemoteTable", "Server", "listening", "served"]

LONGEST = 1 << 28  # bytes of a call
REACH = 10.0  # seconds that an answer of another machine may take


class Answering(socketserver.StreamRequestHandler):
    """One process that asks."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer line by line until it has gone, or says what is no call."""
        with contextlib.suppress(OSError, ValueError):
            while line := self.rfile.readline(LONGEST):
                self.wfile.write(words.written(self.server.answer(line)))  # type: ignore[attr-defined]


class Server(socketserver.ThreadingTCPServer):
    """Answers calls of a table, with a thread for each that asks.  host: who may ask: this machine alone by its own name."""

    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, host: str, port: int, listener: int | None = None) -> None:
        self.table = LocalTable()
        super().__init__((listening(host), port), Answering, bind_and_activate=listener is None)
        if listener is not None:
            self.socket.close()
            self.socket = socket.socket(fileno=listener)
            self.server_address = self.socket.getsockname()
        threading.Thread(target=self.serve_forever, args=(0.05,), name="rushlight store", daemon=True).start()

    def answer(self, line: bytes) -> list[Any]:
        """What a table says to a call: [result], or [None, words] of an error."""
        name, *args = words.call(line)
        try:
            return [getattr(self.table, name)(*args)]
        except ValueError as error:
            return [None, str(error)]

    def end(self, process: int) -> None:
        """Listen no longer.  process: the one that does; one that it forked has its socket alone"""
        if process == os.getpid():
            self.shutdown()
        self.server_close()


class Served:
    """A server that ends with the last store that has it."""

    def __init__(self, server: Server) -> None:
        self.table, self.server_address = server.table, server.server_address
        weakref.finalize(self, server.end, os.getpid())


_served: weakref.WeakValueDictionary[tuple[int, int], Served] = weakref.WeakValueDictionary()  # by port and process


def served(host: str, port: int, shared: bool = False, listener: int | None = None) -> Served:
    """A server that listens at a port, or by a file that does already.

    shared: whether one of this process that does so is given again.  Raises DistNetworkError where another program listens.
    """
    here = _served.get((port, os.getpid())) if shared else None
    if here is not None:
        return here
    try:
        made = Served(Server(host, port, listener))
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}: {error}. Another program "
            "listens there, or the one before has not ended: give another port (MASTER_PORT), or 0 for any"
        ) from None
    _served[int(made.server_address[1]), os.getpid()] = made
    return made


def listening(host: str) -> str:
    """The address to listen at: of this machine alone where it is called by a name that no other knows."""
    try:
        found = socket.gethostbyname(host)
    except OSError:
        return ""
    return found if found.startswith("127.") and host in ("localhost", found) else ""


class RemoteTable:
    """The table of a server, asked for by a connection of each thread.  It has what `LocalTable` has.

    Raises DistNetworkError where nobody listens for as long as `seconds`, and where the server has gone.
    """

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self.host, self.port = host, port
        self._own = threading.local()
        self._connect(seconds)

    def _connect(self, seconds: float) -> Any:
        made = first(self._reached, seconds)
        if made is None:
            raise DistNetworkError(
                f"The client socket has timed out after {seconds * 1000:.0f}ms while trying to connect to ({self.host}, {self.port}). "
                "The process of rank 0 listens there; does it run, and is MASTER_ADDR its machine?"
            )
        self._own.file, self._own.process = made, os.getpid()
        return made

    def _reached(self) -> Any:
        """A file that is connected with the server; None where nobody listens."""
        try:
            made = socket.create_connection((self.host, self.port), REACH)
        except OSError:
            return None
        with made:  # the file holds it
            if made.getsockname() == made.getpeername():  # on a port that is free both ends can be the same
                return None
            made.settimeout(None)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made.makefile("rwb")

    def _ask(self, *call: Any) -> Any:
        file = self._own.file if getattr(self._own, "process", None) == os.getpid() else self._connect(30)
        try:
            file.write(words.written(call))
            file.flush()
            line = file.readline()
        except OSError:
            line = b""
        if not line:
            raise DistNetworkError(
                f"Connection was closed by peer: the store of rank 0 at ({self.host}, {self.port}) has gone, as it does "
                "when that process ends"
            )
        result, *wrong = words.read(line)
        if wrong:
            raise ValueError(*wrong)
        return result

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in words.CALLS:
            raise AttributeError(name)
        return partial(self._ask, name)
