"""Calls of tables as lines of text: JSON in which bytes stand by their numbers.  Nothing that is read is executed."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["CALLS", "read", "written"]

# What may be asked of a table, by the types of the arguments.
CALLS: dict[str, tuple[type, ...]] = {
    "set": (str, bytes), "get": (str,), "add": (str, int), "append": (str, bytes), "compare_set": (str, bytes, bytes),
    "missing": (list,), "wait": (list, float), "push": (str, bytes), "pop": (str, float), "length": (str,),
    "delete": (str,), "keys": (),
}  # fmt: skip


def written(what: Any) -> bytes:
    """A line of what is made of lists, strings, numbers and bytes."""
    return json.dumps(what, default=lambda held: {"bytes": bytes(held).decode("latin-1")}).encode() + b"\n"


def read(line: bytes) -> Any:
    """What `written` made a line of.  Raises ValueError for a line that it did not make."""
    return json.loads(line, object_hook=lambda found: str(found["bytes"]).encode("latin-1"))


def call(line: bytes) -> list[Any]:
    """The name and the arguments of a call.  Raises ValueError for a line that holds none."""
    try:
        name, *args = read(line)
        kinds = CALLS[name]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no call of a store: {line[:80]!r}") from error
    if len(args) != len(kinds) or not all(isinstance(x, kind) for x, kind in zip(args, kinds, strict=True)):
        raise ValueError(f"no arguments of {name}: {line[:80]!r}")
    return [name, *args]
