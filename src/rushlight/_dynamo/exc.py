"""Errors of what compiles in PyTorch: programs catch them.  One of them is raised here, for a backend that nobody knows."""

from __future__ import annotations

__all__ = ["BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend", "ResetRequired",
           "SkipFrame", "TorchDynamoException", "TorchRuntimeError", "Unsupported", "UserError"]  # fmt: skip


class TorchDynamoException(RuntimeError):
    """What can go wrong in compiling."""


class InvalidBackend(TorchDynamoException):
    """No backend has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class InternalTorchDynamoError(TorchDynamoException):
    """A mistake of the compiler's.  Never raised here."""


class SkipFrame(TorchDynamoException):
    """A function is run as it is.  Never raised here."""


class TorchRuntimeError(TorchDynamoException):
    """Tensors that do not fit, found in compiling.  Never raised here: operators raise their own errors."""


class ResetRequired(TorchDynamoException):
    """Settings were changed after compiling.  Never raised here."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised.  Never raised here."""


class Unsupported(TorchDynamoException):
    """What cannot be captured.  Never raised here: nothing is captured."""


class UserError(TorchDynamoException):
    """A program that cannot be captured as it is written.  Never raised here."""


class FailOnRecompileLimitHit(Exception):
    """A function was compiled too often.  Never raised here."""
