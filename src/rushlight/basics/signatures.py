"""How functions are called: those of others, and what errors about arguments call the class whose arguments they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect

__all__ = ["annotations_of", "name_init", "signature_of"]


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature` of a function of somebody else's; its annotations are text where they name what is not there.

    From Python 3.14 on they are evaluated when they are asked for, and what is imported for type checkers alone is not there then.
    """
    import inspect

    try:
        return inspect.signature(fn)
    except Exception:
        if sys.version_info < (3, 14):
            raise
        return inspect.signature(fn, annotation_format=_text())


def annotations_of(fn: object) -> dict[str, Any]:
    """The annotations of a function of somebody else's, as text where they name what is not there; none of what has none."""
    try:
        return getattr(fn, "__annotations__", {})
    except Exception:
        if sys.version_info < (3, 14):
            raise
        import inspect

        return inspect.get_annotations(fn, format=_text())


def _text() -> Any:
    from annotationlib import Format  # type: ignore[import-not-found]

    return Format.STRING


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
