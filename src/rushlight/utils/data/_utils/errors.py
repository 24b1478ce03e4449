"""Exceptions that go from a worker to the one who waits for it."""

from __future__ import annotations

import pickle
import traceback
from typing import Any


class Failure:
    """An exception with its traceback as text, ready to be sent."""

    def __init__(self, error: BaseException, where: str):
        kind: Any = RuntimeError if isinstance(error, StopIteration) else type(error)  # it would end the loop
        try:
            pickle.dumps(kind)
        except Exception:  # a class that only the worker knows
            kind = RuntimeError
        self.kind, self.where = kind, where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def reraise(self) -> None:
        """Raise it here: one of the same class, whose message has the traceback there."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        raise self._exception(message)  # held by no variable of this frame: its traceback holds the frame

    def _exception(self, message: str) -> BaseException:
        if self.kind is KeyError:
            return _KeyError(message)
        try:
            error: BaseException = self.kind(message)
        except Exception:  # its constructor wants something else
            return RuntimeError(message)
        return error


class _KeyError(KeyError):
    """A KeyError that shows its message as it is."""

    def __str__(self) -> str:
        return str(self.args[0])


_KeyError.__name__ = _KeyError.__qualname__ = "KeyError"
