"""Named results of operators with several outputs: tuples whose elements have names too."""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import Any

return_types = ModuleType("rushlight.return_types", "The types of results with names.")


class Named(tuple[Any, ...]):
    """A tuple whose elements are attributes too.  Made from its elements, or from one sequence of them."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values: Any) -> Any:
        if len(values) == 1 and len(cls._fields) != 1:
            values = tuple(values[0])
        return tuple.__new__(cls, values)

    def __repr__(self) -> str:
        body = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{body})"

    def __reduce__(self) -> Any:
        return make, (type(self).__name__, tuple(self))


def named(name: str, *fields: str) -> type[Named]:
    """The type `torch.return_types.NAME` with these fields."""
    space: dict[str, Any] = {
        "__slots__": (),
        "_fields": fields,
        "__match_args__": fields,
        "__module__": "torch.return_types",
    }
    for i, field in enumerate(fields):
        space[field] = property(operator.itemgetter(i), doc=f"Element {i}.")
    made = type(name, (Named,), space)
    setattr(return_types, name, made)
    return made


def make(name: str, values: tuple[Any, ...]) -> Any:
    """A result of the type of that name: how pickle restores it."""
    return getattr(return_types, name)(*values)


sys.modules["rushlight.return_types"] = return_types
