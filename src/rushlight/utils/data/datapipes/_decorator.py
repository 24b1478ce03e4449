"""Decorators of datapipes: names by which they are called, and what is said of their order and types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., object])


class functional_datapipe:
    """Decorate a class of datapipes: every datapipe of its kind has a function of that name that makes one of it.

    Raises TypeError for a class of another kind, Exception for a name that is taken.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: type[C]) -> type[C]:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
                return cls
        made = getattr(cls, "__new__", None)
        if not isinstance(cls, type) or made is None or made is object.__new__:
            raise TypeError("`functional_datapipe` can only decorate subclasses of IterDataPipe and MapDataPipe")
        IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        return cls


_determinism = False


class guaranteed_datapipes_determinism:
    """A context in which datapipes that are said to have no fixed order are refused."""

    def __init__(self) -> None:
        global _determinism
        self.former, _determinism = _determinism, True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        global _determinism
        _determinism = self.former


class non_deterministic:
    """Decorate a class of datapipes without a fixed order, or give a function of arguments that says whether there is none."""

    def __init__(self, arg: type[IterDataPipe[object]] | Callable[..., bool]) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`, got " + arg.__name__)
        elif not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        self.cls = arg if isinstance(arg, type) else None
        self.asks = arg if self.cls is None else None

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.cls is None:
            if not (args and isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
                raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[:1]} is found")
            self.cls = args[0]
            return self.made
        return self.made(*args, **kwargs)

    def made(self, *args: object, **kwargs: object) -> IterDataPipe[object]:
        """A datapipe of the decorated class, or TypeError where order is guaranteed."""
        assert self.cls is not None
        loose = True if self.asks is None else self.asks(*args, **kwargs)
        if not isinstance(loose, bool):
            raise TypeError(
                f"deterministic_fn of `non_deterministic` decorator is required to return a bool, got {type(loose).__name__}"
            )
        if loose and _determinism:
            raise TypeError(f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'")
        found: IterDataPipe[object] = self.cls(*args, **kwargs)
        return found


def argument_validation(f: F) -> F:
    """Accepted: arguments are not compared with the types of a function's parameters."""
    return f


_validation = True


class runtime_validation_disabled:
    """A context in which `runtime_validation` does nothing."""

    def __init__(self) -> None:
        global _validation
        self.former, _validation = _validation, False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        global _validation
        _validation = self.former


def runtime_validation(f: F) -> F:
    """Decorate `__iter__`: accepted, elements are not compared with the type of the datapipe."""
    return f
