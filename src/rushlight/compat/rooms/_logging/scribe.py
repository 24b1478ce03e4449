"""``torch._logging.scribe``: where PyTorch's makers gather what their tests do.  Nothing is gathered here."""

from __future__ import annotations

__all__ = ["open_source_signpost"]


def open_source_signpost(subsystem: str, name: str, parameters: str | None = None) -> None:
    """Nobody is told."""
