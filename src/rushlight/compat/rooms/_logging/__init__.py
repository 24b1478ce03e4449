"""``torch._logging``: what PyTorch's compiler tells of its work.  Nothing is compiled here, and nothing told."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["set_logs"]


def set_logs(**levels: object) -> None:
    """Accepted: there is nothing of which to tell more or less."""


@functools.cache
def warning_once(logger: Any, *args: Any, **kwargs: Any) -> None:
    """Log a warning, the first time that these arguments are given."""
    logger.warning(*args, **kwargs)
