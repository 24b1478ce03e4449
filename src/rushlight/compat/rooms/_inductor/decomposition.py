"""``torch._inductor.decomposition``: of what simpler operators a compiler makes others.  Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["decompositions", "register_decomposition"]

Rule = TypeVar("Rule", bound=Callable[..., Any])
decompositions: dict[Any, Callable[..., Any]] = {}


def register_decomposition(ops: Any) -> Callable[[Rule], Rule]:
    """Decorator of a function in simpler operators for an operator, or for each of a list.  It is noted, and never asked."""

    def noted(rule: Rule) -> Rule:
        decompositions.update(dict.fromkeys(ops if isinstance(ops, list | tuple) else [ops], rule))
        return rule

    return noted
