"""Marks: stretches of the user's code under a name of their own."""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any

from rushlight.basics import events
from rushlight.basics.events import MARK
from rushlight.basics.state import special


class record_function:
    """Gives a block, or every call of a decorated function, a name in the profile; nothing when nobody profiles.

    args: text that is kept with it (`event.kwinputs["args"]`). Marks nest.

    >>> import rushlight as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("my step"):
    ...         y = torch.ones(2) * 2
    >>> [(event.name, len(event.cpu_children)) for event in prof.function_events]
    [('my step', 1), ('aten::mul', 0)]
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        what = (self.name, self.args)
        self._open.append((events.begin(MARK, what), what) if special.observing else None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        opened = self._open.pop()
        if opened is not None:
            events.end(opened[0], MARK, opened[1])

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def marked(*args: object, **kwargs: object) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return marked
