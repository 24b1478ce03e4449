"""What errors about arguments call the class whose arguments they are."""

from __future__ import annotations

from types import FunctionType

__all__ = ["name_init"]


def name_init(cls: type) -> None:
    """Let a class of ours that inherits `__init__` have it under its own name: `Conv2d.__init__() missing 1 required ...`.

    Errors about arguments name the function, which would be that of a class that nobody has heard of (`_Conv.__init__()`).
    """
    init = getattr(cls, "__init__", None)
    if "__init__" in vars(cls) or not isinstance(init, FunctionType) or not cls.__module__.startswith("rushlight."):
        return
    made = FunctionType(init.__code__, init.__globals__, init.__name__, init.__defaults__, init.__closure__)
    made.__kwdefaults__, made.__annotations__, made.__doc__ = init.__kwdefaults__, init.__annotations__, init.__doc__
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", init.__module__
    type.__setattr__(cls, "__init__", made)
