"""How many bytes of gradients DistributedDataParallel sends together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["FIRST", "_DEFAULT_BUCKET_CAP_MB", "_MB_TO_BYTES", "_BucketCapacityConfig"]

_DEFAULT_BUCKET_CAP_MB, _MB_TO_BYTES = 25, 2**20
FIRST = 2**20  # bytes of the first bucket, which is sent soonest, where nothing is said


@dataclass(frozen=True)
class _BucketCapacityConfig:
    """Bytes of the first bucket, of the others, and of each where they are given one by one."""

    bucket_bytes_cap: int
    per_bucket_bytes_caps: tuple[int, ...]
    first_bucket_bytes_cap: int

    @classmethod
    def create(
        cls, bucket_cap_mb: float | None, bucket_cap_mb_list: Sequence[float] | None, use_python_reducer: bool = False
    ) -> _BucketCapacityConfig:
        """Of MiB, for all buckets or for each: 25 by default, and 1 for the first.  Raises AssertionError for a list where gradients are averaged by
        a graph's own hooks.
        """
        if bucket_cap_mb_list and use_python_reducer:
            raise AssertionError("DistributedDataParallel: the python reducer is not supported with bucket_cap_mb_list")
        each = tuple(int(cap * _MB_TO_BYTES) for cap in bucket_cap_mb_list or ())
        whole = (
            max(each)
            if each
            else int((_DEFAULT_BUCKET_CAP_MB if bucket_cap_mb is None else bucket_cap_mb) * _MB_TO_BYTES)
        )
        return cls(whole, each, FIRST if bucket_cap_mb is None and not each else whole)

    @property
    def bucket_cap_mb(self) -> int:
        """MiB of all buckets but the first."""
        return self.bucket_bytes_cap // _MB_TO_BYTES

    @property
    def has_custom_per_bucket_caps(self) -> bool:
        """Whether each bucket has a size of its own."""
        return bool(self.per_bucket_bytes_caps)

    def caps(self) -> list[int]:
        """Bytes of the first buckets, the last of which are those of all that follow."""
        return list(self.per_bucket_bytes_caps) or [self.first_bucket_bytes_cap, self.bucket_bytes_cap]

    def compute_bucket_size_limits(
        self, static_graph: bool, find_unused_parameters: bool
    ) -> tuple[list[int], list[int]]:
        """As PyTorch deals parameters into buckets: for the first pass, and for those after it where that is said."""
        if self.has_custom_per_bucket_caps:
            return self.caps(), self.caps()
        if static_graph or not find_unused_parameters:
            return [sys.maxsize], []  # all in one, until the order is known
        return sorted(set(self.caps())), []
