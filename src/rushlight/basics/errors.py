"""Where a message is explained: a note of the error, so that its message is word for word what programs know."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def explained(error: E, name: str) -> E:
    """The error, with the note that ``rushlight explain NAME`` says what caused it; tracebacks print it below the message.

    name: of a section of docs/errors.md. Make the error in the call: a name for it would close a cycle with the traceback,
    which keeps what the frames hold.
    """
    error.add_note(hint(name))
    return error


def hint(name: str) -> str:
    """The words that say where it is explained."""
    return f"[rushlight explain {name}]"
