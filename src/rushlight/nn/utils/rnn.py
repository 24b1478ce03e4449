"""Sequences of different lengths: packed one time step after the other, or padded to one length."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.basics.dtypes import int64
from rushlight.basics.naming import called
from rushlight.basics.state import modes
from rushlight.dispatch import functions as ops
from rushlight.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

_Fields = namedtuple("_Fields", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


def _with_data(name: str, dtype: str) -> Callable[[Any], PackedSequence]:
    """The method that converts the data as the one of that name of a tensor does."""

    def converted(self: Any) -> PackedSequence:
        data = getattr(self.data, name)()
        return self if data is self.data else type(self)(data, *self[1:])

    return called(converted, name, f"The data as {dtype}.")


class PackedSequence(_Fields):
    """Sequences without padding: `data` (total, *) has all first elements, then all second ones, and so on.

    `batch_sizes` says how many sequences have an element at each step; `sorted_indices` brings the given sequences into
    descending order of length, and `unsorted_indices` back.  Made by `pack_padded_sequence` and `pack_sequence`.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError(
                    "PackedSequence: Expected data to be a list or tuple of length 2 where batch_sizes is None"
                )
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if isinstance(batch_sizes, Tensor) and batch_sizes.device.type != "cpu":
            raise ValueError(f"batch_sizes should always be on CPU, got {batch_sizes.device}")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a GPU."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether the data are in pinned memory."""
        return False

    def pin_memory(self) -> PackedSequence:
        """Accepted for compatibility."""
        return self

    def to(self, *args: object, **kwargs: object) -> PackedSequence:
        """Move or convert the data, as `Tensor.to`; itself if there is nothing to do."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        placed = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *placed)

    def cpu(self) -> PackedSequence:
        """Move the data to the CPU."""
        return self.to(device="cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the data to a GPU."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    double = _with_data("double", "float64")
    float = _with_data("float", "float32")
    half = _with_data("half", "float16")
    long = _with_data("long", "int64")
    int = _with_data("int", "int32")
    short = _with_data("short", "int16")
    char = _with_data("char", "int8")
    byte = _with_data("byte", "uint8")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`; None for None."""
    if permutation is None:
        return None
    inverse = ops.empty_like(permutation)
    inverse[permutation] = ops.arange(0, permutation.numel(), device=permutation.device)
    return inverse


def _steps(lengths: list[int]) -> list[int]:
    """How many sequences, of lengths that do not grow, have an element at each step."""
    return [sum(1 for length in lengths if length > t) for t in range(lengths[0])]


def pack_padded_sequence(
    input: Tensor,
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Drop the padding of sequences.

    Args:
        input: (T, B, *), or (B, T, *) with `batch_first`.
        lengths: B of them, a tensor or list.
        enforce_sorted: require descending lengths; False sorts them.

    Raises RuntimeError for lengths that do not fit, are not positive or, if enforced, not sorted.
    """
    if getattr(lengths, "ndim", 1) != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.dtype}"
        )
    listed = [int(n) for n in (getattr(lengths, "tolist", lambda: lengths)())]
    padded = input.transpose(0, 1) if batch_first else input
    _check_lengths(listed, padded.shape[1], padded.shape[0])
    order = None
    if not enforce_sorted:
        by_length = sorted(range(len(listed)), key=lambda i: -listed[i])
        listed = [listed[i] for i in by_length]
        order = ops.tensor(by_length, dtype=int64, device=padded.device)
        padded = padded.index_select(1, order)
    elif any(a < b for a, b in itertools.pairwise(listed)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence."
        )
    sizes = _steps(listed)
    data = ops.cat([padded[t, :n] for t, n in enumerate(sizes)])
    return PackedSequence(data, ops.tensor(sizes, dtype=int64), order)


def _check_lengths(lengths: list[int], batch: int, longest: int) -> None:
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    if not batch or not longest:
        raise RuntimeError("Cannot pack empty tensors.")
    if min(lengths) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if max(lengths) > longest:
        raise RuntimeError(f"pack_padded_sequence: a length of {max(lengths)} exceeds the padded length {longest}")


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences to one length: (T, B, *) (or (B, T, *)), and their lengths (B).

    `total_length` is T, at least the longest length (the default).  Raises ValueError if it is less.
    """
    data, batch_sizes, _, unsorted = sequence
    sizes = [int(n) for n in batch_sizes]
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    batch, steps = sizes[0], max(len(sizes), total_length or 0)
    places = [t * batch + b for t, n in enumerate(sizes) for b in range(n)]
    index = ops.tensor(places, dtype=int64, device=data.device)
    padded = data.new_full((steps * batch, *data.shape[1:]), padding_value).index_copy(0, index, data)
    padded = padded.view(steps, batch, *data.shape[1:])
    lengths = ops.tensor([sum(1 for n in sizes if n > b) for b in range(batch)], dtype=int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    if unsorted is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted)
        lengths = lengths[unsorted]
    return padded, lengths


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack sequences (L_i, *) into (T, B, *), or (B, T, *) with `batch_first`, padded to the longest.

    Raises RuntimeError for a `padding_side` other than "right" and "left", and for what is no sequence.
    """
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences).__name__}"
        )
    sequences = sequences.unbind(0) if isinstance(sequences, Tensor) else tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    for i, s in enumerate(sequences):
        if not isinstance(s, Tensor):
            raise TypeError(f"pad_sequence: expected Tensor as element {i} of sequences, but got {type(s).__name__}")
        if s.ndim == 0:
            raise RuntimeError(f"pad_sequence: element {i} of sequences has no dimensions: a sequence has at least one")
    longest = max(s.shape[0] for s in sequences)
    fill = _pad_recorded if modes.grad and any(s.requires_grad for s in sequences) else _pad_filled
    return fill(sequences, longest, batch_first, padding_value, padding_side == "left")


def _pad_filled(sequences: Sequence[Any], longest: int, batch_first: bool, value: float, left: bool) -> Tensor:
    """Copy each sequence into its place."""
    first, n = sequences[0], len(sequences)
    head = (n, longest) if batch_first else (longest, n)
    padded = first.new_full((*head, *first.shape[1:]), value)
    for i, s in enumerate(sequences):
        row = padded[i] if batch_first else padded[:, i]
        gap = longest - s.shape[0]
        row[gap if left else 0 : longest if left else longest - gap] = s
    return padded


def _pad_recorded(sequences: Sequence[Any], longest: int, batch_first: bool, value: float, left: bool) -> Tensor:
    """The same by operators whose gradients are slices."""
    padded = []
    for s in sequences:
        gap = longest - s.shape[0]
        if gap:
            filler = s.new_full((gap, *s.shape[1:]), value)
            s = ops.cat((filler, s) if left else (s, filler))
        padded.append(s)
    return ops.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences (L_i, *) of a padded tensor."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, *), of descending lengths unless `enforce_sorted=False`."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences (L_i, *) of a PackedSequence, in the order in which they were given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
