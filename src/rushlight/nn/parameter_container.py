"""ParameterList and ParameterDict: lists and dicts whose tensors are found as parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Self

from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor


def _as_member(value: Tensor | int) -> object:
    """Tensors become parameters; everything else stays."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _describe(value: object, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.shape)
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{what} containing: [{kind} of size {size}]"


class ParameterList(Module):
    """A list whose tensors are found as parameters.

    Tensors are turned into parameters; other values are kept as they are.  `values`: an iterable of them.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _index(self, idx: int) -> int:
        index = operator.index(idx)
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range")
        return index % self._size

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(*idx.indices(self._size)))
        return getattr(self, str(self._index(idx)))

    def __setitem__(self, idx: int, param: Tensor | int) -> None:
        setattr(self, str(self._index(idx)), _as_member(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(self._size))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Add a value at the end and return this list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add the values of an iterable (but not of a single tensor) at the end.  Raises TypeError for others."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line for each value."""
        lines = []
        for i, value in enumerate(self):
            kind = str(value.dtype) if isinstance(value, Tensor) else ""
            lines.append(f"  ({i}): {_describe(value, kind)}")
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a list of parameters computes nothing."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict, in order, whose tensors are found as parameters.

    Tensors are turned into parameters; other values are kept as they are.  `parameters`: a mapping, or an iterable of
    pairs.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Tensor:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Tensor) -> None:
        setattr(self, self._checked(key), _as_member(value))
        self._keys[key] = None

    def __delitem__(self, key: Any) -> None:
        del self._keys[key]
        delattr(self, key)

    @staticmethod
    def _checked(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is {type(key)})"
            )
        return key

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new dict of the same values."""
        return ParameterDict([(key, self[key]) for key in self._keys])

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`, which is set to `default` first if absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Tensor:
        """Remove one and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last and return its key and value."""
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: object = None) -> ParameterDict:
        """A new dict with these keys and one value."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The keys and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: object) -> None:
        """Add or replace values from a mapping or an iterable of pairs; a plain dict's in the order of its keys."""
        from rushlight.nn.modules.container import _pairs

        pairs = _pairs(parameters, "ParameterDict")
        ordered = isinstance(parameters, (OrderedDict, ParameterDict)) or not isinstance(parameters, Mapping)
        for key, value in pairs if ordered else sorted(pairs, key=itemgetter(0)):
            self[key] = value

    def extra_repr(self) -> str:
        """One line for each value."""
        lines = []
        for key, value in self.items():
            kind = str(value.type()) if isinstance(value, Tensor) else ""
            lines.append(f"  ({key}): {_describe(value, kind)}")
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a dict of parameters computes nothing."""
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: object) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: object) -> ParameterDict:
        joined = other.copy() if isinstance(other, ParameterDict) else ParameterDict(other)
        joined.update(self)
        return joined

    def __ior__(self, other: object) -> Self:
        self.update(other)
        return self


FACTORY = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """What factories take (device, dtype, memory_format), given directly or in a dict under "factory_kwargs".

    Raises TypeError for other names, and for what is given in both places.
    """
    direct = dict(kwargs or {})
    inner = dict(direct.pop("factory_kwargs", {}))
    wrong = [name for name in (*direct, *inner) if name not in FACTORY]
    if wrong:
        raise TypeError(f"factory_kwargs(): {wrong[0]!r} is none of {', '.join(FACTORY)}")
    twice = direct.keys() & inner.keys()
    if twice:
        raise TypeError(f"factory_kwargs(): {min(twice)!r} is given directly and under 'factory_kwargs': give it once")
    return inner | direct
