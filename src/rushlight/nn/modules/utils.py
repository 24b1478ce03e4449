"""Arguments that may be one number or one per dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a single value n times and turns an iterable into a tuple."""

    def parse(value: int) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else tuple(repeat(value, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """The values from last to first, each n times: the order of `functional.pad`."""
    return tuple(value for value in reversed(values) for _ in range(n))


def unusual(module: object, **usual: object) -> list[str]:
    """`name=value` of each attribute that is not as usual."""
    found = {name: getattr(module, name) for name in usual}
    return [f"{name}={value}" for name, value in found.items() if value != usual[name]]


def _list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    """`out_size` with None replaced by the last of `defaults`."""
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}, got {len(defaults)}")
    tail = defaults[-len(out_size) :]
    return [default if value is None else value for value, default in zip(out_size, tail, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strip `prefix` from the names of a state_dict, and of its metadata, in place and keeping the order."""
    for key in list(state_dict.keys()):
        stripped = key[len(prefix) :] if key.startswith(prefix) else key
        state_dict[stripped] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata.keys()):
        if key and key.startswith(prefix.rstrip(".")):
            metadata[key[len(prefix) :]] = metadata.pop(key)
