"""Second runs of modules that do what the first did, and leave no trace in their buffers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rushlight.basics.state import modes
from rushlight.storage import root_of
from rushlight.tensor import strided

SMALL = 1 << 20  # bytes of a buffer up to which it is copied before the first run


def buffers_of(module: Any) -> list[tuple[Any, str, Any, bool]]:
    """(dictionary, name, tensor, whether it is a running statistic that counts) of all buffers; none where levels hide values."""
    if modes.levels:
        return []
    parts = [(m, m.training and bool(getattr(m, "track_running_stats", False))) for m in module.modules()]
    return [(m._buffers, name, t, counts) for m, counts in parts for name, t in m._buffers.items()]


def version_of(t: Any) -> int:
    """How often a buffer was changed in place."""
    return 0 if t is None or t._inference else int(t._version)


def is_small(t: Any) -> bool:
    """Whether a buffer is copied before it changes: sparse ones are not, nor those of lazy modules, which are to become others yet."""
    if t is None or t.layout is not strided or hasattr(type(t), "cls_to_become"):
        return False
    return bool(t.nbytes <= SMALL)


def copy_of(t: Any) -> Any:
    """A copy of a buffer, None of none."""
    return None if t is None else t.detach().clone()


def alone(module: Any) -> set[int]:
    """The ids of the buffers of a module on whose memory lies no other one."""
    distinct = {id(t): t for *_, t, _ in buffers_of(module) if t is not None}
    roots = {key: id(root_of(t._held)) for key, t in distinct.items()}
    times = Counter(roots.values())
    return {key for key, root in roots.items() if times[root] == 1}


class First:
    """While a module runs for the first time: the buffers that it changes, as they were.

    Its results may depend on them: what divides a weight by its largest singular value comes closer to that in each run.
    Running statistics do not matter to a norm that counts.  Large buffers that change in place are not copied: that could take as
    much memory as is saved.
    """

    def __init__(self, module: Any):
        self.module = module
        self.changed: list[tuple[Any, str, Any, Any]] = []

    def __enter__(self) -> None:
        self.noted = [
            (buffers, name, t, copy_of(t) if is_small(t) else None, version_of(t))
            for buffers, name, t, counts in buffers_of(self.module)
            if not counts
        ]

    def __exit__(self, *error: object) -> None:
        self.changed = [
            (buffers, name, t, copied if version_of(t) != version else None)
            for buffers, name, t, copied, version in self.noted
            if buffers.get(name) is not t or version_of(t) != version
        ]
        self.noted = []


class Once:
    """While a module runs for the second time: it begins with the buffers that the first run found, and afterwards they are those of
    before it, so that its norms have counted the batch once.

    A buffer that the first run changed in place is another tensor meanwhile, as what the second run saves may be the buffer itself.  Of
    those that lie on each other's memory the numbers are exchanged instead.
    """

    def __init__(self, module: Any, first: First):
        self.module, self.first = module, first
        self.former: list[list[tuple[Any, ...]]] = []

    def __enter__(self) -> None:
        found = [
            (buffers, name, t, copy_of(t) if counts else None, version_of(t))
            for buffers, name, t, counts in buffers_of(self.module)
        ]
        own = alone(self.module) if self.first.changed else set()
        others: dict[int, Any] = {}
        for buffers, name, t, copied in self.first.changed:
            buffers[name] = t
            if copied is not None and id(t) in own:
                buffers[name] = others.setdefault(id(t), copy_of(copied))
            elif copied is not None:
                found.append((buffers, name, t, copy_of(t), -1))
                t.data.copy_(copied)
        self.former.append(found)

    def __exit__(self, *error: object) -> None:
        for buffers, name, t, copied, version in reversed(self.former.pop()):
            buffers[name] = t
            if copied is not None and version_of(t) != version:
                t.data.copy_(copied)


def counting_once(module: Any) -> tuple[Any, Any]:
    """The contexts of both runs of a module, for `context_fn` of `checkpoint`."""
    first = First(module)
    return first, Once(module, first)
