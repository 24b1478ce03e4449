"""The two kinds of datapipes, and the lists that batches are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from rushlight.utils.data.datapipes.one_iterator import _SnapshotState, iterates
from rushlight.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Hook = Callable[[Any], Any]


class Functional:
    """What datapipes have in common: functions that are called by name, and hooks on how they are pickled and shown."""

    functions: ClassVar[dict[str, Callable[..., object]]] = {}
    reduce_ex_hook: ClassVar[Hook | None] = None
    getstate_hook: ClassVar[Hook | None] = None
    str_hook: ClassVar[Hook | None] = None
    repr_hook: ClassVar[Hook | None] = None

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",))

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., object]) -> None:
        """Have `datapipe.function_name(...)` call `function(datapipe, ...)`."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Callable[..., object], enable_df_api_tracing: bool = False
    ) -> None:
        """Have `datapipe.function_name(...)` make `cls_to_register(datapipe, ...)`.  Raises Exception for a name that is taken."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def made(source: object, *args: object, **kwargs: object) -> object:
            return cls_to_register(source, *args, **kwargs)

        made.__doc__, made.__name__ = cls_to_register.__doc__, function_name
        cls.functions[function_name] = made

    def __getstate__(self) -> Any:
        hook = type(self).getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Hook | None) -> None:
        """Pickle `hook_fn(attributes)`; None: the attributes.  Raises RuntimeError where there is another one."""
        cls.getstate_hook = cls._other("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Hook | None) -> None:
        """Pickle what `hook_fn(datapipe)` returns; None: as usual.  Raises RuntimeError where there is another one."""
        cls.reduce_ex_hook = cls._other("reduce_ex_hook", hook_fn)

    @classmethod
    def _other(cls, name: str, hook: Hook | None) -> Hook | None:
        if hook is not None and getattr(cls, name) is not None:
            raise RuntimeError(f"Attempt to override existing {name}: set it to None first")
        return hook

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return str(type(self).__qualname__) if hook is None else str(hook(self))

    def __str__(self) -> str:
        hook = type(self).str_hook
        return str(type(self).__qualname__) if hook is None else str(hook(self))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class MapDataPipe(Functional, Dataset[T_co]):
    """A datapipe whose elements have keys: subclasses define `__getitem__` and `__len__`.

    >>> import rushlight as torch
    >>> pipe = torch.utils.data.datapipes.map.SequenceWrapper(range(4)).map(str)
    >>> pipe[2], len(pipe)
    ('2', 4)
    """

    functions: ClassVar[dict[str, Callable[..., object]]] = {}


class IterDataPipe(Functional, IterableDataset[T_co]):
    """A datapipe whose elements come one after another: subclasses define `__iter__`.

    It has one iterator at a time: a new one makes the former raise RuntimeError.

    >>> import rushlight as torch
    >>> pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(5)).batch(2)
    >>> list(pipe)
    [[0, 1], [2, 3], [4]]
    """

    functions: ClassVar[dict[str, Callable[..., object]]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state: _SnapshotState = _SnapshotState.NotStarted
    _fast_forward_iterator: Any = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is not None:
            cls.__iter__ = iterates(own)  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[T_co]:
        return self  # a subclass defines __next__

    def reset(self) -> None:
        """Prepare for another pass; called before each."""

    def _begin_iterator(self) -> int:
        """The number of a new iterator, after `reset`."""
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        self._number_of_samples_yielded = 0
        self.reset()
        return self._valid_iterator_id

    def _is_valid(self, number: int) -> bool:
        """Whether the iterator of this number is the last one."""
        return number == self._valid_iterator_id


class DFIterDataPipe(IterDataPipe[T_co]):
    """A datapipe of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class _Serialized:
    """A datapipe that goes to another process as what it is.  (PyTorch's have a second way, by the package dill.)"""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __len__(self) -> int:
        return len(self._datapipe)


class _IterDataPipeSerializationWrapper(_Serialized, IterDataPipe[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_Serialized, MapDataPipe[Any]):
    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]


class DataChunk(list[T]):
    """The list that a batch is."""

    def __init__(self, items: Iterable[T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items: list[T] = items

    def as_str(self, indent: str = "") -> str:
        """The elements in brackets."""
        return indent + "[" + ", ".join(str(i) for i in self) + "]"

    def __iter__(self) -> Iterator[T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[T]:
        """The elements as they are."""
        yield from self.items


def sized(pipe: object, of: Iterable[object]) -> list[int]:
    """The lengths of datapipes.  Raises TypeError where one has none."""
    found = [len(each) for each in of if hasattr(type(each), "__len__")]  # type: ignore[arg-type]
    if len(found) != len(list(of)):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return found


Wrapped = Sequence[T] | Mapping[Any, T]
