"""Stores: where tensors saved for backward are kept instead of in memory."""

from __future__ import annotations

from rushlight.stores.errors import StoreError

__all__ = ["StoreError"]
