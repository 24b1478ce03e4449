"""Fetching a batch, or a sample, from a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from rushlight.utils.data.dataset import IterableDataset


class MapFetcher:
    """Fetches by key.  batched: what it is given are lists of keys."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any]):
        self.dataset, self.batched, self.collate = dataset, batched, collate

    def __call__(self, index: Any) -> Any:
        try:
            return self._fetch(index)
        except StopIteration as error:
            raise RuntimeError(f"the dataset raised StopIteration for {index!r}") from error

    def _fetch(self, index: Any) -> object:
        dataset = self.dataset
        if not self.batched:
            return self.collate(dataset[index])
        if callable(getattr(dataset, "__getitems__", None)):
            return self.collate(dataset.__getitems__(index))
        return self.collate([dataset[i] for i in index])


class IterableFetcher:
    """Fetches what comes next, as many samples as it is given keys.  Raises StopIteration at the end."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool):
        self.samples = iter(dataset)
        self.batched, self.collate, self.drop_last, self.ended = batched, collate, drop_last, False

    def __call__(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate(next(self.samples))
        batch = list(itertools.islice(self.samples, len(index)))
        self.ended = len(batch) < len(index)
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate(batch)


def make_fetcher(dataset: object, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Any:
    """The fetcher for a dataset."""
    if isinstance(dataset, IterableDataset):
        return IterableFetcher(dataset, batched, collate, drop_last)
    return MapFetcher(dataset, batched, collate)
