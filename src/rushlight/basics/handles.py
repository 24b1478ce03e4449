"""Ordered collections of hooks, and the handles that remove one."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Any

_ids = itertools.count()


class RemovableHandle:
    """Removes one hook from the dictionary that holds it; a context manager that removes it at the end.

    The dictionary is held weakly: a handle keeps neither hook nor tensor alive.
    """

    next_id = property(lambda self: self.id + 1)

    def __init__(self, hooks_dict: Any, *, extra_dict: dict[Any, Any] | list[Any] | None = None):
        self.id = next(_ids)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extras = extra_dict if isinstance(extra_dict, (list, tuple)) else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras if d is not None)

    def remove(self) -> None:
        """Remove the hook; harmless when it is gone."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, extras = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extras)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.remove()


class Hooks(OrderedDict[int, Any]):
    """Hooks in the order in which they run."""

    def add(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Append `hook`, or put it first, and return the handle that removes it."""
        return add_hook(self, hook, prepend)


def add_hook(hooks: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Append `hook` to a collection that may be of PyTorch's making, or put it first; the handle removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
