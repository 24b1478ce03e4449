"""What scripted programs call in plain Python too: types of what containers hold, and settings of fusion."""

from __future__ import annotations

import builtins
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["enable_onednn_fusion", "export_opnames", "fuser", "isinstance", "onednn_fusion_enabled",
           "optimized_execution", "set_fusion_strategy", "strict_fusion"]  # fmt: skip


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether something is of a type, and what containers hold of the types within its brackets.

    target_type: ``list[int]``, ``dict[str, Tensor]``, ``Optional[...]``, a class, or a tuple of them.  Raises RuntimeError for
    a container without brackets.

    >>> isinstance([1, "a"], list[int]), isinstance({"a": 1}, dict[str, int])
    (False, True)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    kind, within = typing.get_origin(target_type) or target_type, typing.get_args(target_type)
    if kind in (typing.Union, types.UnionType):
        return any(isinstance(obj, type(None) if each is None else each) for each in within)
    if kind in (list, tuple, dict, typing.List, typing.Tuple, typing.Dict) and not within:  # noqa: UP006
        name = getattr(kind, "__name__", str(kind)).lower()
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
        )
    if not builtins.isinstance(obj, kind):
        return False
    return _holds(obj, kind, within)


def _holds(obj: Any, kind: Any, within: tuple[Any, ...]) -> bool:
    """Whether what a container holds is of these types."""
    if kind is list:
        return all(isinstance(each, within[0]) for each in obj)
    if kind is dict:
        return all(isinstance(key, within[0]) and isinstance(value, within[1]) for key, value in obj.items())
    if kind is tuple and within[-1] is not Ellipsis:
        return len(obj) == len(within) and all(map(isinstance, obj, within))
    return kind is not tuple or all(isinstance(each, within[0]) for each in obj)


# Settings of a compiler that is not here ----------------------------------------------------------

_settings: dict[str, Any] = {"onednn": False, "strategy": [("STATIC", 2), ("DYNAMIC", 10)]}


def enable_onednn_fusion(enabled: bool) -> None:
    """Kept, without effect: nothing is compiled."""
    _settings["onednn"] = enabled


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was given last."""
    return bool(_settings["onednn"])


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Kept, without effect; what it was."""
    former, _settings["strategy"] = _settings["strategy"], list(strategy)
    return former  # type: ignore[no-any-return]


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Accepted, without effect."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Accepted, without effect.  name: "fuser0", "fuser1", "fuser2", "fuser3" or "none".  Raises ValueError for another one."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise ValueError(f"unrecognized fuser option (name: {name})")
    yield


@contextmanager
def strict_fusion() -> Iterator[None]:
    """Accepted, without effect."""
    yield


def export_opnames(m: object) -> NoReturn:
    """The operators of a TorchScript program: NotImplementedError, there are none."""
    raise NotImplementedError("torch.jit.export_opnames: there are no TorchScript programs here")
