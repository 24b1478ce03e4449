"""Training on each process by itself, with parameters that are averaged from time to time."""

from rushlight.absent import walls

__all__: list[str] = []

__getattr__ = walls.lacking(__name__, "averagers", "hierarchical_model_averager", "utils")
