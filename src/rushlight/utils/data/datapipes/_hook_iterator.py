"""How far a pass of a datapipe is."""

from rushlight.utils.data.datapipes.one_iterator import _SnapshotState

__all__ = ["_SnapshotState"]
