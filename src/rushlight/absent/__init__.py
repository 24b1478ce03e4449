"""Names that libraries import and that nothing stands behind here: each says why when it is used.

A library that imports a name seldom uses it; one missing name would cost the whole library.  A class of this kind has no
instances, so `isinstance` answers rightly, and may be named in annotations; a function raises when it is called.  What
libraries ask for by `hasattr` or in `try` is not made like this: there a name that is missing is the right answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Absent", "classes", "functions", "is_absent", "names", "put", "refusing"]


class Absent:
    """A class without instances.  Raises NotImplementedError when one is made."""

    why = ""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            f"{type(self).__module__.replace('rushlight', 'torch', 1)}.{type(self).__qualname__}: {self.why}"
        )


def classes(module: str, why: str, given: str) -> dict[str, type]:
    """Classes of a module that have no instances.

    module: PyTorch's name of it; why: the reason, for the message; given: their names, with blanks between.
    """
    made = {}
    for name in given.split():
        doc = f"Not here: {why}.  Raises NotImplementedError when made."
        made[name] = type(name, (Absent,), {"__module__": module, "__doc__": doc, "why": why})
    return made


def functions(module: str, why: str, given: str) -> dict[str, Callable[..., NoReturn]]:
    """Functions of a module that raise NotImplementedError.  The arguments are those of `classes`."""
    return {name: refusing(module, name, why) for name in given.split()}


def refusing(module: str, name: str, why: str) -> Callable[..., NoReturn]:
    """One such function."""

    def refused(*args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{module}.{name}: {why}")

    refused.__name__ = refused.__qualname__ = name
    refused.__module__, refused.__doc__ = module, f"Not here: {why}.  Raises NotImplementedError."
    refused.absent = True  # type: ignore[attr-defined]
    return refused


def names(room: dict[str, Any], why: str, classes_given: str = "", functions_given: str = "") -> None:
    """Put such classes and functions into a module, given by its `globals()`, and into its `__all__`."""
    module = room["__name__"]
    put(room, {**classes(module, why, classes_given), **functions(module, why, functions_given)})


def put(room: dict[str, Any], made: dict[str, Any]) -> None:
    """Put values into a module, and their names into its `__all__`."""
    room.update(made)
    room.setdefault("__all__", []).extend(made)


def is_absent(value: object) -> bool:
    """Whether a name stands for something that is refused."""
    return getattr(value, "absent", False) is True or (isinstance(value, type) and issubclass(value, Absent))
