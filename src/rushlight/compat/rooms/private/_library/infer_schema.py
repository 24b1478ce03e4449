"""``torch._library.infer_schema``: declarations of operators from annotations."""

import types
import typing
from typing import Any

from rushlight.library.schema import infer_schema

__all__ = ["infer_schema", "tuple_to_list"]


def tuple_to_list(tuple_type: Any) -> Any:
    """The list that stands for a tuple in a declaration: of what its items may be."""
    kinds = [kind for kind in typing.get_args(tuple_type) if kind is not ...]
    if not kinds:
        return list
    return types.GenericAlias(list, (typing.Union[tuple(kinds)],))  # noqa: UP007 - made of a tuple
