"""Samplers: the order in which a loader asks for samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from rushlight.dispatch import functions as ops
from rushlight.dispatch.options import values
from rushlight.generator import Generator, default_generator
from rushlight.ops.create.from_python import array_from
from rushlight.tensor import Tensor, wrap

T_co = TypeVar("T_co", covariant=True)

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler(Generic[T_co]):
    """Keys of samples: subclasses define `__iter__`, and `__len__` if they know it."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """0, 1, 2 and so on."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def checked_generator(generator: Generator | None) -> Generator:
    """The generator, the default one for None.  Raises TypeError for what is none."""
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator or None, got {type(generator).__name__}")
    return generator or default_generator


def _fresh(generator: Generator | None) -> Generator:
    """The generator, or a new one that the default one has seeded."""
    if generator is not None:
        return checked_generator(generator)
    return Generator().manual_seed(int(default_generator.numpy.integers(1 << 63)))


def _check_count(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class RandomSampler(Sampler[int]):
    """All indices in random order, or, with replacement, any at random.

    Args:
        data_source: the dataset.
        replacement: an index may come again before all have come.
        num_samples: how many; the dataset's length unless given.
        generator: where the order comes from.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices are given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        numbers, n = _fresh(self.generator).numpy, len(self.data_source)
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                yield from numbers.integers(n, size=min(32, self.num_samples - start)).tolist()
        else:
            # One order more than is asked for is drawn, as in PyTorch.
            for start in range(0, self.num_samples + 1, max(n, 1)):
                yield from numbers.permutation(n)[: self.num_samples - start].tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in checked_generator(self.generator).numpy.permutation(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with the probabilities that weights are proportional to.

    Args:
        weights: one for each sample.
        num_samples: how many are drawn.
        replacement: an index may be drawn again.
        generator: where the draws come from.
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        array = array_from(values("weights", weights) if isinstance(weights, Tensor) else weights, np.dtype(np.float64))
        if array.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {array.shape}")
        self.weights, self.num_samples = wrap(array), num_samples
        self.replacement, self.generator = replacement, generator

    def __iter__(self) -> Iterator[int]:
        weights: Any = self.weights._array
        if (weights < 0).any() or not np.isfinite(weights).all() or not weights.sum() > 0:
            raise RuntimeError("invalid multinomial distribution: weights must be finite, not below 0, and not all 0")
        if not self.replacement and (weights > 0).sum() < self.num_samples:
            raise RuntimeError(f"cannot draw {self.num_samples} of {(weights > 0).sum()} weights above zero once each")
        yield from ops.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of the keys that another sampler gives.

    Args:
        sampler: any iterable of keys.
        batch_size: keys in a list.
        drop_last: leave out a last list that is shorter.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n: Any = self.sampler
        return len(n) // self.batch_size if self.drop_last else -(-len(n) // self.batch_size)
