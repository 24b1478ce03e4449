"""Functions of former versions."""

from rushlight.basics import caller

__all__ = ["worker_init_fn"]


def worker_init_fn(worker_id: int) -> None:
    """Does nothing: a DataLoader deals what it reads to its workers by itself."""
    caller.warn(
        "Usage of `backward_compatibility.worker_init_fn` is deprecated: DataLoader shards among its workers",
        FutureWarning,
    )
