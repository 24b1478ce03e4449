"""Named results of operators with several outputs: tuples whose elements have names too."""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import Any, Self

return_types = ModuleType("rushlight.return_types", "The types of results with names.")


class Named(tuple[Any, ...]):
    """A tuple whose elements are attributes too.  Made from its elements, or from one sequence of them."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values: Any) -> Self:
        if len(values) == 1 and len(cls._fields) != 1:
            values = tuple(values[0])
            if len(values) != len(cls._fields):
                raise TypeError(
                    f"torch.return_types.{cls.__name__}() takes a {len(cls._fields)}-sequence ({len(values)}-sequence given)"
                )
        return super().__new__(cls, values)

    def __repr__(self) -> str:
        body = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{body})"

    def __reduce__(self) -> tuple[Any, ...]:
        return make, (type(self).__name__, tuple(self))

    def __replace__(self, **values: object) -> Self:
        """As `copy.replace` of Python 3.13 asks: the same with other values.  Raises TypeError for a name that is no field."""
        unknown = [name for name in values if name not in self._fields]
        if unknown:
            raise TypeError(f"torch.return_types.{type(self).__name__} has no fields {', '.join(unknown)}")
        return type(self)(*(values.get(name, value) for name, value in zip(self._fields, self, strict=True)))


# Types that are made when they are first asked for, with their fields.
_LATER = {
    "geqrf": "a tau", "linalg_cholesky_ex": "L info", "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors", "linalg_inv_ex": "inverse info", "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info", "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U", "linalg_lu_factor": "LU pivots", "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R", "linalg_slogdet": "sign logabsdet", "linalg_solve_ex": "result info", "linalg_svd": "U S Vh",
    "lu_unpack": "P L U", "qr": "Q R", "slogdet": "sign logabsdet", "svd": "U S V",
    "triangular_solve": "solution cloned_coefficient",
}  # fmt: skip


def _later(name: str) -> type[Named]:
    """A type that nobody asked for yet.  `NAME_out`, of results written to tensors that are given, has the fields of NAME."""
    known = name.removesuffix("_out")
    if known in _LATER:
        return named(name, *_LATER[known].split())
    if known != name and isinstance(vars(return_types).get(known), type):
        return named(name, *getattr(return_types, known)._fields)
    raise AttributeError(f"module 'torch.return_types' has no attribute {name!r}")


return_types.__getattr__ = _later  # type: ignore[method-assign]
return_types.__dir__ = lambda: sorted({*vars(return_types), *_LATER})  # type: ignore[method-assign]


def named(name: str, *fields: str) -> type[Named]:
    """The type `torch.return_types.NAME` with these fields."""
    space: dict[str, Any] = {
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "n_unnamed_fields": 0,
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


def make(name: str, values: tuple[Any, ...]) -> Named:
    """A result of the type of that name: how pickle restores it."""
    kind: type[Named] = getattr(return_types, name)
    return kind(*values)


sys.modules["rushlight.return_types"] = return_types
