"""Modules whose forward runs in a store: on the state of the module they wrap, under its names."""

from __future__ import annotations

from typing import Any


def class_of(cls: type[Any], store: Any) -> type[Any]:
    """A subclass of a module's class whose forward runs in `store`."""

    def forward(self: Any, *args: object, **kwargs: object) -> Any:
        """The module's forward, in the store."""
        return store.run(cls.forward.__get__(self), self, args, kwargs)

    def get_name(self: Any) -> str:
        return f"{cls._get_name(self)} in stores.{store.kind}"

    stores = (*getattr(cls, "_stores", ()), store)
    plain = getattr(cls, "_stored_class", cls)
    body = {"forward": forward, "_get_name": get_name, "_stores": stores, "_stored_class": plain, "__reduce_ex__": reduced,
            "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}  # fmt: skip
    return type(cls.__name__, (cls,), body)


def reduced(module: Any, protocol: int) -> tuple[Any, ...]:
    """How copy and pickle make a wrapped module again."""
    return empty, (module._stored_class, module._stores), module.__dict__


def empty(cls: Any, stores: tuple[Any, ...]) -> Any:
    """A wrapped module without state; stores: innermost first."""
    for store in stores:
        cls = class_of(cls, store)
    return object.__new__(cls)


def wrapped(module: object, store: Any) -> Any:
    """A module that is one with `module` in all its attributes, and whose forward runs in `store`."""
    made = object.__new__(class_of(type(module), store))
    object.__setattr__(made, "__dict__", module.__dict__)
    return made
