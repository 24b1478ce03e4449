"""Watching a process that runs already: it allows it, and a watcher of the same user finds it by its number."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import stat
import tempfile
import threading

from rushlight.memory.recordings import recorder
from rushlight.memory.recordings.columns import pack
from rushlight.memory.watching.feed import Feed

__all__ = ["allow_watch", "connect"]

EVENTS = 1 << 18  # that a watched process keeps: 23 MB
REPORT = b"r"  # what a watcher says who wants the recording too
_allowed: int | None = None  # the process that did


def allow_watch(every: float = 0.5) -> str:
    """Let `rushlight memory watch --attach` watch this process, and return the path of the socket that it listens on.

    Until somebody watches nothing is recorded, and nothing costs anything. The socket is for this user alone.

    Args:
        every: seconds between two samples that are sent.

    Raises OSError where the socket cannot be made, PermissionError where another user owns its folder.

    >>> from rushlight import memory
    >>> memory.allow_watch().endswith(".sock")
    True
    """
    global _allowed
    path = socket_of(os.getpid())
    if _allowed == os.getpid():
        return path
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # of a process that had this number
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    _allowed = os.getpid()
    atexit.register(_forget, path, _allowed)
    threading.Thread(target=_listen, args=(listener, every), name="rushlight-watched", daemon=True).start()
    return path


def connect(pid: int) -> socket.socket:
    """A connection to a process that allows it.  Raises ConnectionError, which says what to do, where there is none."""
    found = socket.socket(socket.AF_UNIX)
    try:
        found.connect(socket_of(pid))
    except OSError as error:
        found.close()
        raise ConnectionError(
            f"process {pid} cannot be watched ({error.strerror or error}): it must run, be of this user, and have called "
            "rushlight.memory.allow_watch(), or have been started by rushlight run --watchable"
        ) from None
    return found


def socket_of(pid: int) -> str:
    """The path of a process's socket, in a folder of this user's alone."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = os.path.join(base, f"rushlight-{os.getuid()}")
    os.makedirs(folder, 0o700, exist_ok=True)
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077 or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} must be a folder of this user's alone (mode 700), and is not")
    return os.path.join(folder, f"{pid}.sock")


def _forget(path: str, pid: int) -> None:
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _listen(listener: socket.socket, every: float) -> None:
    while True:
        with contextlib.suppress(OSError), listener.accept()[0] as watcher:  # one after the other
            _serve(watcher, every)


def _serve(watcher: socket.socket, every: float) -> None:
    """Send samples until the watcher goes or wants the recording; record meanwhile, unless the program does so itself."""
    own = not recorder.is_recording()
    if own:
        recorder.record_history(max_entries=EVENTS)
    watched = recorder._active
    assert watched is not None
    with contextlib.suppress(OSError), watcher.makefile("wb") as file:
        feed = Feed(watched, file, every)
        feed.start()
        wanted = b""
        with contextlib.suppress(OSError):
            wanted = watcher.recv(1)
        feed.over.set()
        feed.join(2)
    if own and recorder._active is watched:
        recorder.record_history(None)
    if wanted == REPORT:
        watcher.sendall(json.dumps({"recording": pack(watched.recording())}).encode() + b"\n")
