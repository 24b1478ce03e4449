"""Embeddings."""

from __future__ import annotations

from typing import Any, Self

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import unusual
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


def _table(
    owner: str,
    num_embeddings: int,
    embedding_dim: int,
    given: Tensor | None,
    freeze: bool,
    device: device | str | int | None,
    dtype: dtype | None,
) -> tuple[Any, bool]:
    """The weight parameter, and whether it is still to be filled."""
    shape = (num_embeddings, embedding_dim)
    if given is None:
        return Parameter(ops.empty(shape, device=device, dtype=dtype), requires_grad=not freeze), True
    if tuple(given.shape) != shape:
        raise AssertionError(
            f"{owner}: Shape of weight does not match num_embeddings and embedding_dim: got {tuple(given.shape)}, "
            f"expected {shape}"
        )
    return Parameter(given, requires_grad=not freeze), False


def _padding_index(padding_idx: int | None, num_embeddings: int) -> int | None:
    """`padding_idx` counted from the start.  Raises AssertionError out of range."""
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings, got {padding_idx} for {num_embeddings} embeddings"
        )
    return padding_idx % num_embeddings


class _Table(Module):
    """What Embedding and EmbeddingBag share.  weight: (num_embeddings, embedding_dim), standard normal at first."""

    weight: Tensor
    padding_idx: int | None

    def reset_parameters(self) -> None:
        """Draw new vectors; that of `padding_idx` is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            weight: Any = self.weight
            with no_grad():
                weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """Looks up vectors by number.

    Args:
        padding_idx: the number whose vector gets no gradient, and is zero at first.
        max_norm: vectors looked up are first rescaled in place to at most this `norm_type`-norm.
        scale_grad_by_freq: divide a vector's gradient by how often it was looked up.
        sparse: give `weight` a sparse gradient, of the vectors looked up alone: for SparseAdam, SGD and Adagrad.

    Raises AssertionError for a `padding_idx` out of range.

    >>> import rushlight as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([1, 2])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _padding_index(padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse
        self.weight, fresh = _table("Embedding", num_embeddings, embedding_dim, _weight, _freeze, device, dtype)
        if fresh:
            self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """(*) of integers -> (*, embedding_dim)."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Sizes, and what differs from the defaults."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        parts += unusual(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return ", ".join([*parts, "sparse=True"] if self.sparse else parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An Embedding on the vectors `embeddings` (num_embeddings, embedding_dim), by default frozen."""
        _need_matrix(embeddings)
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """Looks up bags of vectors and reduces each to its sum, mean or max, without making the vectors.

    Args: as Embedding; `mode` "sum", "mean" or "max"; `include_last_offset` appends the end to the offsets.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.padding_idx = _padding_index(padding_idx, num_embeddings)
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self.weight, fresh = _table("EmbeddingBag", num_embeddings, embedding_dim, _weight, False, device, dtype)
        if fresh:
            self.reset_parameters()

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """(B, N), or (N) with `offsets` (B) where the bags start -> (B, embedding_dim)."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Sizes, and what differs from the defaults."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        parts += unusual(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        parts.append(f"mode={self.mode!r}")
        return ", ".join(parts if self.padding_idx is None else [*parts, f"padding_idx={self.padding_idx}"])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """An EmbeddingBag on the vectors `embeddings` (num_embeddings, embedding_dim), by default frozen."""
        _need_matrix(embeddings)
        rows, columns = embeddings.shape
        bag = cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad_(not freeze)
        return bag


def _need_matrix(embeddings: Tensor) -> None:
    if embeddings.ndim != 2:
        raise AssertionError(f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.ndim} dimensions")
