"""Communication hooks that send gradients as integers of 8 bits: a fourth of the bytes of float32, to each process from each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.group import member
from rushlight.distributed.reducer import GradBucket
from rushlight.distributed.running import nothing
from rushlight.distributed.work import Arriving, Work
from rushlight.tensor import Tensor

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

Array = NDArray[Any]
LEAST = np.finfo(np.float32).eps  # of a step


def steps(rows: Array) -> tuple[Array, Array]:
    """The step and the place of 0 among 256 that span each row and 0.  (m, n) -> (m, 1), (m, 1)"""
    low, high = np.minimum(rows.min(1, keepdims=True), 0), np.maximum(rows.max(1, keepdims=True), 0)
    step = np.maximum((high - low) / np.float32(255), LEAST)
    return step, np.clip(-np.round(low / step), 0, 255)


def _averaged(process_group: ProcessGroup | None, bucket: GradBucket, rows: Array) -> Any:
    """Average what each process rounds to 8 bits: the future of the bucket's buffer, with which `rows` begin.  (m, n)"""
    group, buffer = member(process_group), bucket.buffer()
    step, zero = steps(rows)
    sent = np.clip(np.round(rows / step) + zero, 0, 255).astype(np.uint8)
    scales, whole = (
        np.empty((group.size(), 2, *step.shape), np.float32),
        np.empty((group.size(), *sent.shape), np.uint8),
    )
    way = group.channel
    first = Work(way.all_gather(scales, np.stack([step, zero])), nothing, "all_gather of scales", group.timeout)
    second = Work(way.all_gather(whole, sent), nothing, "all_gather of gradients", group.timeout)

    def arrive() -> Tensor:
        first.wait()
        mean = sum(s * (part.astype(np.float32) - z) for (s, z), part in zip(scales, whole, strict=True))
        buffer._held[...] = (np.asarray(mean).reshape(-1)[: buffer.numel()] / group.size()).reshape(buffer.shape)
        return buffer

    return Arriving(second, arrive, alone=True)


def quantization_pertensor_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Any:
    """Average gradients that are rounded to 256 steps between the least and the largest of a bucket."""
    return _averaged(process_group, bucket, np.asarray(bucket.buffer()._array, np.float32).reshape(1, -1))


def quantization_perchannel_hook(process_group: ProcessGroup | None, bucket: GradBucket, bucket_size: int = 512) -> Any:
    """As `quantization_pertensor_hook`, with steps for each `bucket_size` gradients."""
    flat = np.asarray(bucket.buffer()._array, np.float32).reshape(-1)
    rows = np.zeros((flat.size // bucket_size + 1, bucket_size), np.float32)
    rows.reshape(-1)[: flat.size] = flat
    return _averaged(process_group, bucket, rows)
