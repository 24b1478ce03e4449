"""Operators that a package has in compiled code, supplied here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd import no_grad
from rushlight.library import Library, overload, register_kernel

__all__ = ["supplier"]


def supplier(library: Library) -> Callable[[str], Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """A decorator, by schema, of functions that are to be operators of a library, which compute without recording."""

    def operator(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            supply(library, schema, function)
            return function

        return keep

    return operator


def supply(library: Library, schema: str, function: Callable[..., Any]) -> None:
    """Declare an operator that a function computes."""

    def silent(*args: object) -> Any:
        with no_grad():
            return function(*args)

    name = library.define(schema)
    library.impl(name, silent, "CPU")
    register_kernel(f"{library.ns}::{name}", "cpu", silent)
    overload(f"{library.ns}::{name}").opaque = True
