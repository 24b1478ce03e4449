"""Datapipes in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Self, TypeVar

from rushlight.basics import dtypes
from rushlight.dispatch.named import named
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, sized
from rushlight.utils.data.sampler import Sampler, SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]

T_co = TypeVar("T_co", covariant=True)


def drawn_seed() -> int:
    """A seed from the default generator."""
    return int(named.empty((), dtype=dtypes.int64).random_().item())


class SamplerIterDataPipe(IterDataPipe[Any]):
    """What a sampler, made of a datapipe and arguments, gives.  Raises AssertionError for a datapipe without a length."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        sampler: type[Sampler[Any]] = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe, self.sampler_args = datapipe, sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        made: Any = sampler
        self.sampler = made(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return sized(self, [self.sampler])[0]


class Shuffling:
    """What draws its order anew for each pass, by a seed that is given or by the default generator."""

    _rng: random.Random
    _seed: int | None = None
    _enabled = True

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Shuffle or not; returns itself."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """The seed of the next pass; returns itself."""
        self._seed = seed
        return self

    def _reseed(self) -> None:
        self._rng.seed(drawn_seed() if self._seed is None else self._seed)
        self._seed = None


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling, IterDataPipe[T_co]):
    """The elements in a random order, drawn from a buffer of `buffer_size` of them.

    unbatch_level: of what lies that many levels of lists down; -1 all. Seeds come from the default generator unless `set_seed`.
    """

    def __init__(self, datapipe: IterDataPipe[T_co], *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._buffer = buffer_size, list[Any]()
        self._rng = random.Random()

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.datapipe) if not self._enabled else self._shuffled()

    def _shuffled(self) -> Iterator[T_co]:
        for x in self.datapipe:
            if len(self._buffer) == self.buffer_size:
                i = self._rng.randint(0, len(self._buffer) - 1)
                found, self._buffer[i] = self._buffer[i], x
                yield found
            else:
                self._buffer.append(x)
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return sized(self, [self.datapipe])[0]

    def reset(self) -> None:
        """Seed the generator of this pass."""
        self._buffer = []
        if self._enabled:
            self._reseed()
