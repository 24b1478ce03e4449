"""Where processes that were started one by one meet: a store, by the address of one of them or by a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.stores import FileStore, HashStore, Store, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

Met = tuple[Store, int, int]
_COMMAND = "or start all processes with one command: rushlight run -n PROCESSES train.py"
_HINTS = {"MASTER_ADDR": f": the machine of rank 0, localhost for processes of one machine; {_COMMAND}",
          "MASTER_PORT": ": a port of it at which nobody listens, as 29500", "RANK": f"; {_COMMAND}"}  # fmt: skip

_listening: dict[tuple[str, int, int], Store] = {}  # by address and process


def _wrong(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _parsed(scheme: str, url: str, missing: Callable[[SplitResult], str]) -> tuple[SplitResult, int, int]:
    """An address taken apart, rank and size.  missing: says what it lacks, of which nothing is asked"""
    parts = urlsplit(url)
    if missing(parts):
        raise _wrong(scheme, missing(parts))
    query = parse_qs(parts.query)
    return parts, _number(scheme, query, "rank"), _number(scheme, query, "world_size")


def _number(scheme: str, query: dict[str, list[str]], name: str) -> int:
    if name not in query:
        raise _wrong(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(query[name][0])


def _environment(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        raise _wrong("env", f"environment variable {name} expected, but not set{_HINTS.get(name, '')}")
    return found


def _store(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    """The store of a group, by an address where rank 0 listens."""
    if rank == 0:
        return _listening.get((host, port, os.getpid())) or _listen(host, port, size, timeout)
    return TCPStore(host, port, size, False, timeout)


def _listen(host: str, port: int, size: int, timeout: timedelta) -> Store:
    """The store of rank 0, until its end: another group of the same address may be asked for before it is made here."""
    made = _listening[host, port, os.getpid()] = TCPStore(host, port, size, True, timeout)
    return made


def _by_address(url: str, timeout: timedelta) -> Iterator[Met]:
    parts, rank, size = _parsed("tcp", url, lambda parts: "port number missing" * (parts.port is None))
    host, port = parts.hostname or "localhost", parts.port or 0
    yield HashStore() if size == 1 else _store(host, port, rank, size, timeout), rank, size


def _by_environment(url: str, timeout: timedelta) -> Iterator[Met]:
    query = parse_qs(urlsplit(url).query)
    rank, size = (
        int(query[name.lower()][0] if name.lower() in query else _environment(name)) for name in ("RANK", "WORLD_SIZE")
    )
    yield HashStore() if size == 1 else _of_environment(rank, size, timeout), rank, size


def _of_environment(rank: int, size: int, timeout: timedelta) -> Store:
    return _store(_environment("MASTER_ADDR"), int(_environment("MASTER_PORT")), rank, size, timeout)


def _by_file(url: str, timeout: timedelta) -> Iterator[Met]:
    parts, rank, size = _parsed("file", url, lambda parts: "" if parts.path else "path missing")
    store = FileStore(parts.path, size)
    store.set_timeout(timeout)
    yield store, rank, size


_handlers: dict[str, Callable[..., Iterator[Met]]] = {
    "tcp": _by_address,
    "env": _by_environment,
    "file": _by_file,
}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Met]]) -> None:
    """Let addresses that begin with a scheme be met at by a function of the address, which yields what `rendezvous` does.

    Raises RuntimeError for a scheme that has one.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **options: Any) -> Iterator[Met]:
    """The store by which processes meet, the number of this one, and how many there are: an iterator of one such triple.

    url: "env://" (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say it), "tcp://HOST:PORT" (rank 0 listens there) or
    "file:///PATH"; rank, world_size: where the address does not say them, as "?rank=0&world_size=2".  options: timeout, for how
    long is waited for the others.

    Raises ValueError where something is missing, RuntimeError for another scheme, DistNetworkError and DistStoreError where the
    others do not come.

    >>> import rushlight as torch
    >>> store, rank, size = next(iter(torch.distributed.rendezvous("tcp://localhost:29500", 0, 1)))
    >>> rank, size
    (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlsplit(url)
    given = [f"{name}={n}" for name, n in (("rank", rank), ("world_size", world_size)) if n != -1]
    query = "&".join([*given, *([parts.query] if parts.query else [])])
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    timeout = options.pop("timeout", default_pg_timeout)
    address = parts._replace(query=query).geturl()
    if parts.scheme == "file" and not address.startswith("file:///"):  # as urllib writes no path
        address = "file://"
    return _handlers[parts.scheme](address, timeout=timeout, **options)
