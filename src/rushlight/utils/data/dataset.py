"""Datasets: things with samples, by index or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from rushlight.basics.caller import warn
from rushlight.generator import Generator, default_generator
from rushlight.tensor import Tensor
from rushlight.utils.data.sampler import checked_generator

T_co = TypeVar("T_co", covariant=True)

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset(Generic[T_co]):
    """Samples by key: subclasses define `__getitem__`, and `__len__` for samplers and loaders.

    A subclass may define `__getitems__(keys)`, which a loader calls for a whole batch.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples one after the other: subclasses define `__iter__`.

    With several workers each iterates over a copy: `get_worker_info()` tells it which part to give.
    """

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples that are rows of tensors of one length.

    >>> import rushlight as torch
    >>> torch.utils.data.TensorDataset(torch.ones(3, 2), torch.arange(3))[1]
    (tensor([1., 1.]), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError(f"Size mismatch between tensors: lengths {[len(t) for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        tensors: Any = self.tensors
        return tuple(t[index] for t in tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Samples that are tuples, or dictionaries, of one sample of each of several datasets of one length."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not (args or kwargs):
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        self._parts: list[Any] = list(args or kwargs.values())
        self._length = len(self._parts[0])
        if any(len(part) != self._length for part in self._parts):
            raise ValueError("Size mismatch between datasets")

    def _join(self, parts: list[Any]) -> object:
        return dict(zip(self.datasets, parts, strict=True)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._join([part[index] for part in self._parts])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [_items(part, indices) for part in self._parts]
        return [self._join(list(row)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _items(dataset: Any, indices: list[Any]) -> list[Any]:
    """Several samples, all at once if the dataset can."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    items: list[Any] = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets, one after the other.

    Attributes: `datasets`; `cumulative_sizes`, where each of them ends.
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each of several sequences ends, one after the other."""
        return list(itertools.accumulate(len(each) for each in sequence))

    @property
    def cummulative_sizes(self) -> list[int]:
        """The older name of `cumulative_sizes`; a FutureWarning."""
        warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        sample: T_co = self.datasets[which][idx - start]
        return sample


class ChainDataset(IterableDataset[Any]):
    """The samples of several iterable datasets, one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """The samples of a dataset at some indices."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[Any]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[Any]]:
    """Divide a dataset into subsets at random.

    Args:
        dataset: anything with a length and samples by index.
        lengths: of the subsets; or fractions that sum up to 1, where what rounding leaves over goes to the first ones.
        generator: where the order comes from.
    """
    total = len(dataset)
    sizes = _sizes(lengths, total) if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 else list(lengths)
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    if any(n != int(n) for n in sizes):
        raise TypeError(f"random_split: lengths must be integers, or fractions that sum up to 1, got {list(lengths)}")
    order = checked_generator(generator).numpy.permutation(total).tolist()
    ends = list(itertools.accumulate(int(n) for n in sizes))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(sizes, ends, strict=True)]


def _sizes(fractions: Sequence[float], total: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    sizes = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(sizes)):
        sizes[i % len(sizes)] += 1
    for i, size in enumerate(sizes):
        if size == 0:
            warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    return sizes
