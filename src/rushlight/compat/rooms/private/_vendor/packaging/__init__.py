"""``torch._vendor.packaging``: versions and their order."""

from rushlight.compat.rooms.private._vendor.packaging import version

__all__ = ["version"]
