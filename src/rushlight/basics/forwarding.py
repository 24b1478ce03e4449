"""Attributes that are those of a part."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

__all__ = ["forwarded"]


def forwarded(path: str, doc: str | None = None) -> Any:
    """A property that is an attribute of a part, such as "base.loc", or another attribute of the object itself."""
    return property(attrgetter(path), doc=doc)
