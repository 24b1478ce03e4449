"""``torch._dynamo.backends``: the names of what compiles."""

from rushlight._dynamo.backends import registry

__all__ = ["registry"]
