"""Errors of communication between processes, by PyTorch's names."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """What went wrong between processes."""


class DistBackendError(DistError):
    """What went wrong in what carries messages."""


class DistNetworkError(DistError):
    """What went wrong in the network."""


class DistStoreError(DistError):
    """What went wrong in a store."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""
