"""``torch._weights_only_unpickler``: the reader of files that are not trusted, which runs nothing that is in them."""

from __future__ import annotations

from pickle import UnpicklingError
from typing import IO, Any

from rushlight.serialization import names
from rushlight.serialization.machine import Machine

__all__ = ["Unpickler", "UnpicklingError", "load"]


class Unpickler(Machine):
    """A reader of one pickle.  encoding: of strings of Python 2."""

    def __init__(self, file: IO[bytes], *, encoding: str = "bytes"):
        super().__init__(file, self.persistent_load, encoding)

    def persistent_load(self, pid: object) -> Any:
        """What the pickle names by a number: nothing, unless a subclass says so.  Raises UnpicklingError."""
        raise UnpicklingError(
            "A load persistent id instruction was encountered, but no persistent_load function was specified."
        )


def load(file: IO[bytes], *, encoding: str = "ASCII") -> Any:
    """What a pickle holds, of what is allowed in files that are not trusted.  Raises UnpicklingError for anything else."""
    return Unpickler(file, encoding=encoding).load()


def _get_allowed_globals() -> dict[str, Any]:
    """What is allowed without the user's saying so, by name."""
    return dict(names.default_table())
