"""Communication hooks of DistributedDataParallel that average gradients, as they are or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import ReduceOp, all_reduce
from rushlight.distributed.group import member
from rushlight.distributed.narrow import sum_narrow
from rushlight.distributed.reducer import GradBucket
from rushlight.distributed.work import Arriving
from rushlight.tensor import Tensor

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Any]


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Any:
    """Average gradients, as is done without a hook."""
    buffer = bucket.buffer()
    work: Any = all_reduce(buffer, ReduceOp.AVG, member(process_group), async_op=True)
    return Arriving(work, lambda: buffer, alone=True)


def _compressed(process_group: ProcessGroup | None, bucket: GradBucket, dtype: Any) -> object:
    """Average gradients that are divided, converted, sent and added up in 16 bits, and converted back."""
    group, buffer = member(process_group), bucket.buffer()
    scaled = buffer._array / buffer._array.dtype.type(group.size())
    narrow, work = sum_narrow(scaled.astype(dtype.numpy), group)

    def back() -> Tensor:
        buffer._held[...] = narrow
        return buffer

    return Arriving(work, back, alone=True)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Any:
    """Average gradients in float16: half the bytes of float32."""
    return _compressed(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Any:
    """Average gradients in bfloat16: half the bytes of float32."""
    return _compressed(process_group, bucket, dtypes.bfloat16)


def _wrapped(hook: Hook, dtype: dtype | None) -> Hook:
    def narrowed(state: object, bucket: GradBucket) -> Any:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def back(future: Any) -> Tensor:
            found = future.value()
            buffer.copy_(found[0] if isinstance(found, (list, tuple)) else found)
            return buffer

        return hook(state, bucket).then(back)

    return narrowed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gives another one gradients in float16."""
    return _wrapped(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gives another one gradients in bfloat16."""
    return _wrapped(hook, dtypes.bfloat16)
