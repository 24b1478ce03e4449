"""Names that are nearly the one that was asked for, for messages about a name that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["Unknown", "nearest"]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was likely meant, or None.

    >>> nearest("Lienar", ["Linear", "ReLU"]), nearest("sm", ["sum"])
    ('Linear', 'sum')
    """
    from difflib import get_close_matches

    public = [n for n in names if n.startswith("_") == name.startswith("_")]
    return next(iter(get_close_matches(name, public, 1, 0.76)), None)


class Unknown(str):
    """A message about a name that is not there, which asks for the nearest one when it is shown: `hasattr` does not wait for it.

    >>> print(Unknown("there is no 'rnd'", "rnd", lambda: ["rand"]))
    there is no 'rnd'; did you mean 'rand'?
    """

    name: str
    names: Callable[[], Iterable[str]]

    def __new__(cls, message: str, name: str, names: Callable[[], Iterable[str]]) -> Unknown:
        told = super().__new__(cls, message)
        told.name, told.names = name, names
        return told

    def __str__(self) -> str:
        near = nearest(self.name, self.names())
        return super().__str__() + (f"; did you mean {near!r}?" if near else "")

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)
