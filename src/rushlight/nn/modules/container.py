"""Sequential, ModuleList and ModuleDict: modules that hold modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Self

from rushlight.nn.modules.module import Module, _addindent
from rushlight.nn.parameter_container import ParameterDict, ParameterList
from rushlight.tensor import Tensor

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Deprecated: a module with children given by keyword."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Children under the names "0", "1", ...: a list of modules."""

    def _renumber(self, modules: Iterable[Any]) -> None:
        """Replace all children by `modules`, numbered from 0."""
        listed = list(modules)
        self._modules.clear()
        for i, module in enumerate(listed):
            self.add_module(str(i), module)

    def _index(self, idx: int) -> int:
        """`idx` counted from the start.  Raises IndexError where it is out of range."""
        index, size = operator.index(idx), len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return index % size

    def _key(self, idx: int) -> str:
        """The name of the child number `idx`."""
        return list(self._modules)[self._index(idx)]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            delattr(self, key)
        self._after_deletion()

    def _after_deletion(self) -> None:
        self._renumber(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end and return this list."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int) -> Module:
        """Remove the module number `key` and return it."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be indexed")


class Sequential(_Numbered):
    """Modules called one after the other, each on the output of the one before.

    Args: the modules, or one ordered dict of them by name.  Supports the operations of a list.

    >>> import rushlight as torch
    >>> len(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    2
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self._renumber(args)

    def forward(self, input: Tensor) -> Any:
        """The output of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def _after_deletion(self) -> None:
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __add__(self, other: Any) -> Sequential:
        _need_sequential(other, "add")
        return type(self)(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        _need_sequential(other, "add")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        return type(self)(*self._repeated(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        for module in self._repeated(other)[len(self) :]:
            self.append(module)
        return self

    def _repeated(self, times: int) -> list[Any]:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return list(self) * times

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before number `index` and return this one."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        listed = list(self)
        listed.insert(index, module)
        self._renumber(listed)
        return self

    def extend(self, sequential: Iterable[Any]) -> Self:
        """Add modules at the end and return this one."""
        for module in sequential:
            self.append(module)
        return self


def _need_sequential(other: object, what: str) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(f"{what} operator supports only objects of Sequential class, but {type(other)} is given.")


class ModuleList(_Numbered):
    """A list of modules that are found as children.  `modules`: an iterable of them.  It has no forward of its own."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(self._index(idx))]

    def __setitem__(self, idx: Any, module: Module) -> None:
        setattr(self, str(self._index(idx)), module)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Any]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before number `index`."""
        listed = list(self)
        listed.insert(index, module)
        self._renumber(listed)

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add the modules of an iterable at the end.  Raises TypeError for what is no iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Runs of children that print alike are shown once, with their number."""
        runs: list[list[Any]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        if not runs:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(_run_line(*run) for run in runs) + "\n)"


def _run_line(first: int, last: int, text: str) -> str:
    text = _addindent(text, 2)
    return f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"


class ModuleDict(Module):
    """Modules by name that are found as children, in order.  `modules`: a mapping or an iterable of pairs."""

    def __init__(self, modules: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove one and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """Their names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Their names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: object) -> None:
        """Add or replace modules from a mapping or an iterable of (name, module) pairs."""
        for name, module in _pairs(modules, "ModuleDict"):
            self[name] = module


def _pairs(given: object, owner: str) -> list[Any]:
    """The (name, value) pairs of a mapping or an iterable.  Raises TypeError or ValueError for others."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if hasattr(given, "items"):
        return list(given.items())
    pairs = list(given)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        if len(list(pair)) != 2:
            raise ValueError(f"{owner} update sequence element #{i} has length {len(list(pair))}; 2 is required")
    return pairs
