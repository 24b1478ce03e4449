"""PowerSGD: gradients sent as products of two thin matrices (Vogels, Karimireddy and Jaggi, NeurIPS 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from rushlight.distributed.collectives import ReduceOp, all_reduce
from rushlight.distributed.group import member
from rushlight.distributed.reducer import GradBucket
from rushlight.distributed.work import Arriving, Work
from rushlight.tensor import Tensor, wrap

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What the hook keeps from step to step.

    Args:
        process_group: all processes if None.
        matrix_approximation_rank: columns of the thin matrices.
        start_powerSGD_iter: steps that average gradients as they are before the first that is compressed.
        min_compression_rate: a matrix is compressed where that makes it so many times smaller.
        use_error_feedback: add what the last step left out to the next: as many bytes as the gradients.
        warm_start: begin with the matrices of the last step.
        orthogonalization_epsilon: added to norms of columns.
        random_seed: of the first matrices, the same on all processes.
        compression_stats_logging_frequency, batch_tensors_with_same_shape: accepted.

    Raises ValueError for `start_powerSGD_iter` of at most 1 with error feedback or warm start.
    """

    def __init__(self, process_group: ProcessGroup | None, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
                 min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
                 orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10000,
                 batch_tensors_with_same_shape: bool = False) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError("PowerSGDState: expected start_powerSGD_iter > 1 with use_error_feedback or warm_start, because "
                             "DistributedDataParallel deals its buckets anew after the first step")  # fmt: skip
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.use_error_feedback, self.warm_start = (
            min_compression_rate,
            use_error_feedback,
            warm_start,
        )
        self.orthogonalization_epsilon, self.rng = orthogonalization_epsilon, np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}  # by bucket: what was left out
        self.q_memory_dict: dict[int, list[Any]] = {}  # by bucket: the second matrices
        self.iter = 0

    def counted(self, bucket: GradBucket) -> bool:
        """Count a step with its last bucket; whether this one is compressed."""
        now = self.iter >= self.start_powerSGD_iter
        self.iter += bucket.is_last()
        return now


def orthogonal(matrix: Any, epsilon: float) -> Any:
    """Orthonormal columns with the same span.  (n, r) -> (n, r)"""
    if epsilon == 0:
        return np.linalg.qr(matrix)[0].astype(matrix.dtype)
    for i in range(matrix.shape[1]):
        column = matrix[:, i : i + 1]
        column /= np.linalg.norm(column) + epsilon
        matrix[:, i + 1 :] -= column @ (column.T @ matrix[:, i + 1 :])
    return matrix


def mean(arrays: Sequence[Any], group: ProcessGroup) -> Any:
    """Begin to average arrays over processes, in one message; a function that waits and gives them."""
    flat = np.concatenate([a.reshape(-1) for a in arrays]) if arrays else np.empty(0, np.float32)
    work: Any = all_reduce(wrap(flat), ReduceOp.AVG, group, async_op=True) if arrays else Work()

    def found() -> list[Any]:
        work.wait()
        parts = np.split(flat, np.cumsum([a.size for a in arrays])[:-1]) if arrays else []
        return [part.reshape(a.shape) for part, a in zip(parts, arrays, strict=True)]

    found.work = work  # type: ignore[attr-defined]
    return found


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Any:
    """Average gradients: matrices as the product of two thin ones, where that is smaller, and everything else as it is."""
    if not state.counted(bucket):
        return allreduce_hook(state.process_group, bucket)
    return _approximated(state, bucket, [g._array for g in bucket.gradients()])


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Any:
    """As `powerSGD_hook`, with all gradients of a bucket as one square matrix: smaller still, and less like them."""
    if not state.counted(bucket):
        return allreduce_hook(state.process_group, bucket)
    flat = bucket.buffer()._array
    side = math.isqrt(max(flat.size - 1, 0)) + 1
    square = np.zeros(side * side, flat.dtype)
    square[: flat.size] = flat
    return _approximated(state, bucket, [square.reshape(side, side)])


def _approximated(state: PowerSGDState, bucket: GradBucket, grads: list[Any]) -> Any:
    """Send the matrices among gradients as products; the future of the bucket's buffer."""
    group, buffer, index = member(state.process_group), bucket.buffer(), bucket.index()
    total = np.concatenate([g.reshape(-1) for g in grads])
    if state.use_error_feedback and index in state.error_dict:
        total += state.error_dict[index]
    pieces = [
        p.reshape(g.shape[0] if g.ndim else 1, -1)
        for p, g in zip(np.split(total, np.cumsum([g.size for g in grads])[:-1]), grads, strict=True)
    ]
    large = [i for i, m in enumerate(pieces) if grads[i].ndim > 1 and worth(state, m)]
    plain = mean([m for i, m in enumerate(pieces) if i not in large], group)
    qs = _second(state, index, [pieces[i] for i in large])
    first = mean([pieces[i] @ q for i, q in zip(large, qs, strict=True)], group)

    def arrive() -> Tensor:
        result = [m.copy() for m in pieces]
        for i, m in zip([i for i in range(len(pieces)) if i not in large], plain(), strict=True):
            result[i] = m
        ps = [orthogonal(p, state.orthogonalization_epsilon) for p in first()]
        new = mean([pieces[i].T @ p for i, p in zip(large, ps, strict=True)], group)()
        for i, p, q in zip(large, ps, new, strict=True):
            result[i] = p @ q.T
        if state.warm_start:
            state.q_memory_dict[index] = new
        flat = np.concatenate([m.reshape(-1) for m in result])
        if state.use_error_feedback:
            left = total - flat
            for i, (start, m) in enumerate(zip(np.cumsum([0, *(g.size for g in grads)]), pieces, strict=False)):
                if i not in large:
                    left[start : start + m.size] = 0
            state.error_dict[index] = left
        buffer._held[...] = flat[: buffer._held.size].reshape(buffer._held.shape)
        return buffer

    return Arriving(first.work, arrive)


def worth(state: PowerSGDState, matrix: Any) -> bool:
    """Whether a matrix is enough smaller as a product."""
    n, m = matrix.shape
    return bool((n + m) * min(n, m, state.matrix_approximation_rank) * state.min_compression_rate < n * m)


def _second(state: PowerSGDState, index: int, matrices: list[Any]) -> list[Any]:
    """The second matrices to begin with: those of the last step, or random ones that are the same on all processes."""
    known = state.q_memory_dict.get(index) if state.warm_start else None
    if known is not None and [q.shape[0] for q in known] == [m.shape[1] for m in matrices]:
        return [orthogonal(q.copy(), state.orthogonalization_epsilon) for q in known]
    made = []
    for m in matrices:
        columns = min(*m.shape, state.matrix_approximation_rank)
        made.append(
            orthogonal(
                state.rng.standard_normal((m.shape[1], columns)).astype(m.dtype), state.orthogonalization_epsilon
            )
        )
    return made
