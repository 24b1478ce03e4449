"""Second runs of modules that leave no trace in their buffers."""

from __future__ import annotations

import contextlib
from typing import Any

from rushlight.basics.state import modes


class Once:
    """While a module runs for the second time: afterwards its norms have counted the batch once, and its buffers are those of before.

    What it changes in place in buffers that are no running statistics stays changed: to copy all buffers for that could take as
    much memory as is saved.
    """

    def __init__(self, module: Any):
        self.module = module
        self.former: list[list[tuple[Any, ...]]] = []

    def __enter__(self) -> None:
        found: list[tuple[Any, ...]] = []
        for m in self.module.modules() if not modes.levels else ():
            counts = m.training and getattr(m, "track_running_stats", False)
            for name, t in m._buffers.items():
                copied = t.detach().clone() if counts and t is not None else None
                found.append((m._buffers, name, t, copied, None if copied is None else t._version))
        self.former.append(found)

    def __exit__(self, *error: object) -> None:
        for buffers, name, t, copied, version in self.former.pop():
            buffers[name] = t
            if copied is not None and t._version != version:
                t.data.copy_(copied)


def counting_once(module: Any) -> tuple[Any, Any]:
    """The contexts of both runs of a module, for `context_fn` of `checkpoint`."""
    return contextlib.nullcontext(), Once(module)
