"""``torch._vendor.packaging.version``: versions that compare as PEP 440 says."""

from __future__ import annotations

from rushlight.compat.torch_version import TorchVersion

__all__ = ["InvalidVersion", "Version", "parse"]

Version = TorchVersion


class InvalidVersion(ValueError):
    """What packages raise for a string that is no version."""


def parse(version: str) -> TorchVersion:
    """A version of a string."""
    return TorchVersion(version)
