"""Pictures of the graph that backward runs through."""

from rushlight.viz.picture import Picture, graph

__all__ = ["Picture", "graph"]
