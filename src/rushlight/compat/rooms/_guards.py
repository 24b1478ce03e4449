"""``torch._guards``: what a compiler is doing, which nothing here is."""

from __future__ import annotations

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> None:
    """The mode of tensors without memory: none; they are on the device meta."""


def detect_fake_mode(inputs: object = None) -> None:
    """The mode that inputs were made in: none."""
