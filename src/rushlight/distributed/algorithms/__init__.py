"""Ways to train together: communication hooks, and processes with different numbers of batches."""

from rushlight.absent import walls
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]


__getattr__ = walls.lacking(__name__, "_checkpoint", "ddp_comm_hooks", "join", "model_averaging")
