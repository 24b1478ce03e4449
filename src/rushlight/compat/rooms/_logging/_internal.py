"""``torch._logging._internal``: loggers of what a compiler would do, which stay silent."""

from __future__ import annotations

import logging
from typing import Any

from rushlight.compat.rooms._logging import set_logs, warning_once

__all__ = ["getArtifactLogger", "set_logs", "trace_log", "trace_structured", "warning_once"]

trace_log = logging.getLogger("torch.__trace")


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of a module for one kind of message."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def trace_structured(name: str, *args: Any, **kwargs: Any) -> None:
    """Nobody is told."""
