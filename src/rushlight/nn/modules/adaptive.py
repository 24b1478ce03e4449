"""AdaptiveLogSoftmaxWithLoss."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from rushlight.basics.devices import device
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over very many classes: rare ones in clusters, each with a projection of smaller size.

    Args:
        in_features: size of the input's features.
        n_classes: number of classes, the frequent ones first.
        cutoffs: where the clusters start: ascending, between 0 and n_classes.
        div_value: each cluster's projection is smaller by this factor.
        head_bias: a bias for the first cluster.

    Raises ValueError for cutoffs that are not ascending positive integers below n_classes.
    Source: Grave et al., Efficient softmax approximation for GPUs (2017).
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner, size = int(in_features // div_value ** (i + 1)), self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, inner, bias=False, **options)
            self.tail.append(Sequential(first, Linear(inner, size, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """(N, in_features), (N) or without N -> (output: log-probability of each target, loss: minus their mean)."""
        x, target, batched = self._batch(input_, target_)
        pieces, places = [], []
        cluster_of = ops.zeros_like(target)
        for start in self.cutoffs[:-1]:
            cluster_of = cluster_of + (target >= start).to(target.dtype)
        head = F.log_softmax(self.head(x), dim=1)
        for cluster in range(self.n_clusters + 1):
            rows = (cluster_of == cluster).nonzero().squeeze(1)
            if rows.numel():
                places.append(rows)
                pieces.append(self._of_cluster(cluster, x, head, target, rows))
        if places:
            order = ops.argsort(ops.cat(places))
            output = ops.cat(pieces).index_select(0, order)
        else:
            output = head[:, 0]
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _batch(self, input_: Tensor, target_: Tensor) -> tuple[Any, Any, bool]:
        """Both with a batch dimension.  Raises RuntimeError for shapes or targets that do not fit."""
        batched = target_.ndim > 0
        if target_.ndim > 1:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: got {target_.ndim}D")
        if input_.ndim != (2 if batched else 1):
            raise RuntimeError(
                f"{target_.ndim}D target tensor expects {2 if batched else 1}D input tensors, but found inputs with "
                f"sizes {input_.shape}."
            )
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError(
                f"Input and target should have the same size in the batch dimension, got {input_.shape[0]} and "
                f"{target_.shape[0]}."
            )
        x, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found."
            )
        return x, target, batched

    def _of_cluster(self, cluster: int, x: Tensor, head: Tensor, target: Tensor, rows: Tensor) -> Tensor:
        """Log-probabilities of the targets in `rows`, which belong to this cluster (0 is the head)."""
        wanted = target.index_select(0, rows)
        of_head = head.index_select(0, rows)
        if cluster == 0:
            return of_head.gather(1, wanted.unsqueeze(1)).squeeze(1)
        inside = F.log_softmax(self.tail[cluster - 1](x.index_select(0, rows)), dim=1)
        local = inside.gather(1, (wanted - self.cutoffs[cluster - 1]).unsqueeze(1)).squeeze(1)
        return local + of_head[:, self.shortlist_size + cluster - 1]

    def log_prob(self, input: Tensor) -> Tensor:
        """(N, in_features) -> log-probabilities of all classes (N, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            inside = F.log_softmax(tail(input), dim=1)
            parts.append(inside + head[:, self.shortlist_size + i].unsqueeze(1))
        return ops.cat(parts, dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """(N, in_features) -> the most probable class of each (N); clusters are looked into only where they win."""
        head: Any = self.head(input)
        best = head.argmax(dim=1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        x: Any = input
        full: Any = self.log_prob(x.index_select(0, rows))
        return best.index_copy(0, rows, full.argmax(dim=1))


def _check_cutoffs(cutoffs: list[Any], n_classes: int) -> None:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    ascending = cutoffs == sorted(cutoffs) and len(set(cutoffs)) == len(cutoffs)
    if not ascending or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            f"is between 1 and n_classes-1, got {cutoffs} for {n_classes} classes"
        )
