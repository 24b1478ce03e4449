"""The process that processes of a group meet at: it tells MPI in each of them who the others are, and each who has gone.

MPI asks as it asks a launcher, by PMI-1: lines of `name=value` (Balaji et al., "PMI: A Scalable Parallel Process-Management
Interface for Extreme-Scale Systems", 2010).  A process that wants to hear of the end of others asks by `cmd=watch`: the
connection ends when the process does, however it does.  The file runs by itself, as a program that imports little, beside the
process of rank 0: that one cannot answer while it waits in MPI.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import selectors
import socket
import sys
import time
from collections.abc import Callable

__all__ = ["Meeting", "main"]

LONGEST = 1 << 20  # bytes of a line


class Guest:
    """A connection of a process.  rank: its number, None before it has said who it is; watches: whether it is no MPI's."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.unread = connection, b""
        self.rank: int | None = None
        self.watches = self.left = self.finished = False

    def tell(self, words: str) -> None:
        """Send a line, unless the process has gone."""
        with contextlib.suppress(OSError):  # which the end of its connection says, too
            self.connection.sendall(words.encode() + b"\n")


def fields(line: str) -> dict[str, str]:
    """The names and values of a line."""
    words, _, value = line.partition(" value=")  # which may hold spaces
    found = dict(word.partition("=")[::2] for word in words.split())
    return {**found, "value": value} if value else found


class Meeting:
    """What processes say to each other by way of this one.  ids: the number that each proves by which one it is."""

    def __init__(self, ids: list[int]) -> None:
        self.ranks = {str(number): rank for rank, number in enumerate(ids)}
        self.size, self.name = len(ids), secrets.token_hex(8)  # MPI names memory that processes share by it
        self.values: dict[str, str] = {}
        self.waiting: list[Guest] = []
        self.guests: list[Guest] = []
        self.watchers: set[int] = set()
        self.gone: set[int] = set()
        self.answers: dict[str, Callable[[Guest, dict[str, str]], str | None]] = {
            "initack": self.come, "watch": self.watch, "barrier_in": self.barrier, "put": self.put, "get": self.get,
            "finalize": self.finish, "leave": self.leave,
            "init": lambda *_: "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": lambda *_: "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=4096",
            "get_appnum": lambda *_: "cmd=appnum rc=0 appnum=0",
            "get_my_kvsname": lambda *_: f"cmd=my_kvsname rc=0 kvsname={self.name}",
            "get_universe_size": lambda *_: f"cmd=universe_size rc=0 size={self.size}",
        }  # fmt: skip

    def heard(self, guest: Guest, line: str) -> bool:
        """Answer a line; False for one that nobody of the group would say."""
        said = fields(line)
        answer = self.answers.get(said.get("cmd", ""))
        if answer is None or (guest.rank is None and said["cmd"] not in ("initack", "watch")):
            return False
        words = answer(guest, said)
        if words is not None:
            guest.tell(words)
        return guest.rank is not None

    def come(self, guest: Guest, said: dict[str, str]) -> str | None:
        """The first line of MPI in a process."""
        guest.rank = self.ranks.get(said.get("pmiid", ""))
        known = f"cmd=initack rc=0\ncmd=set size={self.size}\ncmd=set rank={guest.rank}\ncmd=set debug=0"
        return None if guest.rank is None else known

    def watch(self, guest: Guest, said: dict[str, str]) -> str | None:
        """The first line of a process that wants to hear of the others."""
        guest.rank, guest.watches = self.ranks.get(said.get("pmiid", "")), True
        if guest.rank is not None:
            self.watchers.add(guest.rank)
        for rank in self.gone:
            guest.tell(f"cmd=gone rank={rank}")
        return None

    def put(self, guest: Guest, said: dict[str, str]) -> str:
        """Keep what others are to know."""
        self.values[said["key"]] = said.get("value", "")
        return "cmd=put_result rc=0 msg=success"

    def get(self, guest: Guest, said: dict[str, str]) -> str:
        """Say what another has put."""
        value = self.values.get(said["key"])
        return (
            "cmd=get_result rc=-1 msg=key_not_found"
            if value is None
            else f"cmd=get_result rc=0 msg=success value={value}"
        )

    def barrier(self, guest: Guest, said: dict[str, str]) -> None:
        """Let all go on when all are here."""
        self.waiting.append(guest)
        if len(self.waiting) == self.size:
            for each in self.waiting:
                each.tell("cmd=barrier_out rc=0")
            self.waiting = []

    def finish(self, guest: Guest, said: dict[str, str]) -> str:
        """The last line of MPI in a process."""
        guest.finished = True
        return "cmd=finalize_ack rc=0"

    def leave(self, guest: Guest, said: dict[str, str]) -> None:
        """A process is about to end.  When all are, they end MPI together."""
        guest.left = True
        if len(self.watchers) == self.size and not self.gone and all(each.left for each in self.watching()):
            self.tell("cmd=all")

    def watching(self) -> list[Guest]:
        """The connections that hear of others."""
        return [each for each in self.guests if each.watches]

    def tell(self, words: str) -> None:
        """Say something to all who hear of others."""
        for each in self.watching():
            each.tell(words)

    def lost(self, guest: Guest) -> None:
        """A connection has ended: the others hear of it, and who waits for all of them within MPI waits no longer."""
        self.guests.remove(guest)
        guest.connection.close()
        if guest.rank is None:
            return
        if guest.watches:
            self.gone.add(guest.rank)
            self.tell(f"cmd=gone rank={guest.rank}")
        elif not guest.finished and self.waiting:
            for each in self.waiting:
                each.connection.shutdown(socket.SHUT_RDWR)


def serve(meeting: Meeting, listener: socket.socket, host: int, seconds: float) -> None:
    """Answer until all have gone, or the process that wanted this has before all came.

    host: a file of which that process holds the other end; seconds: for how long is waited for all.
    """
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    ready.register(host, selectors.EVENT_READ)
    end = time.monotonic() + seconds
    while meeting.guests or (len(meeting.watchers) < meeting.size and time.monotonic() < end):
        for key, _ in ready.select(1.0):
            if key.fileobj is listener:
                guest = Guest(listener.accept()[0])
                meeting.guests.append(guest)
                ready.register(guest.connection, selectors.EVENT_READ, guest)
            elif key.data is None:
                ready.unregister(host)
                if len(meeting.watchers) < meeting.size:
                    return
            elif not received(meeting, key.data):
                ready.unregister(key.fileobj)
                meeting.lost(key.data)


def received(meeting: Meeting, guest: Guest) -> bool:
    """Hear what a guest has sent; False where it sends no more, or what nobody of the group would say."""
    try:
        found = guest.connection.recv(1 << 16)
    except OSError:
        return False
    *lines, guest.unread = (guest.unread + found).split(b"\n")
    if not found or len(guest.unread) > LONGEST:
        return False
    return all(meeting.heard(guest, line.decode("ascii", "replace")) for line in lines)


def main() -> None:
    """Read the numbers, an address and a time from the first line of input; print the port, and serve."""
    ids, host, seconds = json.loads(sys.stdin.readline())
    with socket.create_server((host, 0), backlog=1024) as listener:
        print(listener.getsockname()[1], flush=True)
        sys.stdout.close()
        serve(Meeting(ids), listener, sys.stdin.fileno(), seconds)


if __name__ == "__main__":
    main()
