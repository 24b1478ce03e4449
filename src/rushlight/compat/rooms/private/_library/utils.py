"""``torch._library.utils``: questions about operators and their declarations."""

from __future__ import annotations

from typing import Any

from rushlight.library import namespaces

__all__ = ["is_builtin", "is_functional_schema", "lookup_op", "parse_namespace"]


def parse_namespace(qualname: str) -> tuple[str, str]:
    """The namespace and the name of "namespace::name".  Raises ValueError for another form."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(f"Expected `qualname` to be of the form `namespace::name`, but got {qualname}")  # fmt: skip
    return parts[0], parts[1]


def lookup_op(qualname: str) -> Any:
    """The overload of a name, "namespace::name" or "namespace::name.overload"."""
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(namespaces, namespace), name), overload or "default")


def is_builtin(op: Any) -> bool:
    """Whether an operator is one of PyTorch's own."""
    return op.namespace in {"aten", "prim", "prims"}


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether an operator of this declaration changes none of its arguments."""
    return not schema.is_mutable
