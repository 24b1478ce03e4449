"""``torch._tensor_str``: the parts of a tensor's text, for classes that print themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight.ops.python.printing import body, ended, set_printoptions, text
from rushlight.ops.python.printing import options as PRINT_OPTS
from rushlight.tensor import Tensor

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str", "_str_intern", "_tensor_str", "get_printoptions", "printoptions",
           "set_printoptions"]  # fmt: skip


def get_printoptions() -> dict[str, Any]:
    """How tensors print now."""
    return dict(vars(PRINT_OPTS))


@contextlib.contextmanager
def printoptions(**given: Any) -> Iterator[None]:
    """Print tensors otherwise within a block: with the arguments of `set_printoptions`."""
    former = get_printoptions()
    set_printoptions(**given)
    try:
        yield
    finally:
        vars(PRINT_OPTS).update(former)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements in their brackets."""
    array = self._array
    return body(array, indent) if array.size else "[]"


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text and what follows it, in lines of at most `linewidth`, with the closing bracket."""
    return ended(tensor_str, suffixes, indent, force_newline)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor, with other contents where they are given."""
    return text(inp, tensor_contents)


_str = _str_intern
