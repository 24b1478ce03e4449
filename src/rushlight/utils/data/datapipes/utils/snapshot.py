"""Bring a chain of datapipes to the place where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.utils.data.datapipes.one_iterator import _SnapshotState
from rushlight.utils.data.graph_settings import apply_random_seed

if TYPE_CHECKING:
    from rushlight.generator import Generator
    from rushlight.utils.data.datapipes.datapipe import IterDataPipe


def _simple_graph_snapshot_restoration(
    datapipe: IterDataPipe[object], n_iterations: int, rng: Generator | None = None
) -> None:
    """Pass over the first elements: the next iterator begins after them.

    rng: a generator in the state in which the first pass began. Raises RuntimeError for a datapipe that is restored already.
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph has not "
            "been restored."
        )
    datapipe.reset()
    if rng is not None:
        apply_random_seed(datapipe, rng)
    begun, left = iter(datapipe), n_iterations
    while left > 0:
        try:
            next(begun)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available."
            ) from None
        left -= 1
    datapipe._fast_forward_iterator = begun
    datapipe._snapshot_state = _SnapshotState.Restored
