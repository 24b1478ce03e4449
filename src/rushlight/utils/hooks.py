"""Handles that remove a hook."""

from __future__ import annotations

from rushlight.basics.handles import RemovableHandle

__all__ = ["RemovableHandle"]
