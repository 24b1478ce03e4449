"""Handles that remove a hook."""

from __future__ import annotations

from rushlight.handles import RemovableHandle

__all__ = ["RemovableHandle"]
