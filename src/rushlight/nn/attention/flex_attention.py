"""Attention whose scores a function changes: in plain operators, with the whole matrix of scores in memory.

Source: Dong and others, "Flex Attention: A Programming Model for Generating Optimized Attention Kernels", 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypedDict

from rushlight import absent
from rushlight.basics.devices import device
from rushlight.basics.size import Size
from rushlight.dispatch.named import named
from rushlight.func import vmap
from rushlight.nn.functional import pad
from rushlight.overrides.index_mode import TransformGetItemToIndex
from rushlight.tensor import Tensor

__all__ = ["BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention",
           "noop_mask", "or_masks"]  # fmt: skip


class FlexKernelOptions(TypedDict, total=False):
    """Settings of PyTorch's kernels, which have no effect here: for annotations."""

    BACKEND: str
    BLOCK_M: int
    BLOCK_N: int
    num_stages: int
    num_warps: int


_Mask = Callable[[Any, Any, Any, Any], Any]  # batch, head, row, column -> whether it is seen
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LEVELS = ((0, None, None, None), (None, 0, None, None), (None, None, 0, None), (None, None, None, 0))


def _over(function: Callable[..., Any], given: bool) -> Callable[..., Any]:
    """A function of a score (where `given`) and four indices, for all of them at once.  -> (B, H, rows, columns)"""
    for dims in reversed(_LEVELS):
        function = vmap(function, in_dims=((0, *dims) if given else dims))

    def mapped(*args: object) -> Tensor:
        with TransformGetItemToIndex():
            return function(*args)

    return mapped


def _indices(*sizes: int) -> tuple[Any, ...]:
    return tuple(named.arange(size) for size in sizes)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that hides nothing."""
    return batch.new_ones((), dtype=(batch == batch).dtype)


def and_masks(*mask_mods: _Mask) -> _Mask:
    """The mask that shows what all of these show.  Raises RuntimeError for what is no function."""
    _check("and_masks", mask_mods)

    def both(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        seen = noop_mask(b, h, q, kv)
        for mask in mask_mods:
            seen = seen & mask(b, h, q, kv)
        return seen

    return both


def or_masks(*mask_mods: _Mask) -> _Mask:
    """The mask that shows what any of these shows.  Raises RuntimeError for what is no function."""
    _check("or_masks", mask_mods)

    def either(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        seen = ~noop_mask(b, h, q, kv)
        for mask in mask_mods:
            seen = seen | mask(b, h, q, kv)
        return seen

    return either


def _check(name: str, masks: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"{name}: all inputs should be callable mask_mods: {masks}")


def create_mask(mod_fn: _Mask, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: device | str | int | None = None, **options: object) -> Tensor:  # fmt: skip
    """The mask as a tensor of bools.  -> (B, H, Q_LEN, KV_LEN), with 1 where B or H is None

    mod_fn: of batch, head, row and column, tensors of no dimensions: whether it is seen.
    """
    return _over(mod_fn, False)(*_indices(B or 1, H or 1, Q_LEN, KV_LEN)).broadcast_to((B or 1, H or 1, Q_LEN, KV_LEN))


class BlockMask:
    """A mask by its function, and the lengths that it was made for.

    Here nothing is skipped by blocks: BLOCK_SIZE is kept and has no effect.
    """

    def __init__(self, mask_mod: _Mask, mask: Tensor, BLOCK_SIZE: int | tuple[int, ...]) -> None:
        self.mask_mod, self._mask = mask_mod, mask
        self.BLOCK_SIZE = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
        self.seq_lengths = tuple(mask.shape[-2:])

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, rows, columns."""
        return tuple(self._mask.shape)

    def numel(self) -> int:
        """How many pairs of a row and a column there are."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """What share of the pairs, in percent, no block covers that shows something."""
        rows, columns = self.BLOCK_SIZE
        return 100.0 * (1.0 - int(self.to_dense().sum()) * rows * columns / self.numel())

    def to_dense(self) -> Tensor:
        """Which blocks show something.  -> (B, H, rows of blocks, columns of blocks), 0 and 1"""
        rows, columns = self.BLOCK_SIZE
        spare = (0, -self.shape[-1] % columns, 0, -self.shape[-2] % rows)
        padded = pad(self._mask, spare) if any(spare) else self._mask
        blocks = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows))
        return blocks.any(-1).any(-2).int()

    def to(self, device: device | str | int | None) -> BlockMask:
        """Itself: there is one device."""
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(mask_mod: _Mask, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: device | str | int | None = None,
                      BLOCK_SIZE: int | tuple[int, ...] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
                      **options: object) -> BlockMask:  # fmt: skip
    """A BlockMask of a function of batch, head, row and column.

    B, H: None where the mask is the same for all.
    """
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN), BLOCK_SIZE)


absent.names(globals(), "flex_attention returns logarithms of sums with return_lse=True", "AuxOutput AuxRequest")


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None,
                   block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: object = None, *,
                   return_aux: object = None) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
    """softmax(score_mod(query @ key^T * scale)) @ value; 0 for rows of which the mask shows nothing.

    query: (B, H, L, E), key: (B, Hk, S, E), value: (B, Hk, S, Ev) -> (B, H, L, Ev), and with return_lse the logarithm of each
    row's sum of exponentials, (B, H, L).  score_mod: of a score, batch, head, row and column, as tensors of no dimensions.
    Raises ValueError for other numbers of dimensions, or of heads without enable_gqa, NotImplementedError for return_aux.
    """
    _check_inputs(query, key, value, enable_gqa, return_aux)
    groups = query.shape[1] // key.shape[1]
    if groups != 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = _over(score_mod, True)(scores, *_indices(*scores.shape)).to(scores.dtype)
    if block_mask is not None:
        seen = _mask_for(block_mask, scores.shape)
        scores = scores.masked_fill(~seen, -math.inf)
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(hidden, 0.0).softmax(-1).masked_fill(hidden, 0.0)
    out = weights @ value
    return (out, scores.logsumexp(-1)) if return_lse else out


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, return_aux: object) -> None:
    if return_aux is not None:
        raise NotImplementedError(
            "flex_attention: expected return_aux=None; return_lse=True returns what it would hold"
        )
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError(
            f"Expected query, key, and value to be 4D tensors, but got {query.dim()}D, {key.dim()}D, {value.dim()}D"
        )
    if query.shape[1] != key.shape[1] and not (enable_gqa and query.shape[1] % key.shape[1] == 0):
        raise ValueError(
            f"flex_attention: expected as many heads of query and key, got {query.shape[1]} and {key.shape[1]}; a multiple "
            "of them with enable_gqa=True"
        )


def _mask_for(block_mask: BlockMask, shape: Size) -> Tensor:
    """What of the scores is seen; a part of the mask where there are fewer rows or columns than it was made for."""
    rows, columns = shape[-2:]
    if rows > block_mask.seq_lengths[0] or columns > block_mask.seq_lengths[1]:
        raise ValueError(
            f"flex_attention: block_mask was created for {block_mask.seq_lengths} but got q_len={rows} and kv_len={columns}: "
            "make it anew for these lengths"
        )
    return block_mask._mask[..., :rows, :columns]
