"""Fetching a batch, or a sample, from a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any


class MapFetcher:
    """Fetches by key.  batched: what it is given are lists of keys."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any]):
        self.dataset, self.batched, self.collate = dataset, batched, collate

    def fetch(self, index: Any) -> Any:
        """The batch of some keys, or the sample of one."""
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
        self.dataset, self.dataset_iter = dataset, iter(dataset)
        self.batched, self.collate, self.drop_last, self.ended = batched, collate, drop_last, False

    def fetch(self, index: Any) -> Any:
        """The next batch, or sample."""
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate(next(self.dataset_iter))
        batch = list(itertools.islice(self.dataset_iter, len(index)))
        self.ended = len(batch) < len(index)
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate(batch)


class _DatasetKind:
    """How a dataset gives its samples: by key, or one after the other."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: object, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> IterableFetcher | MapFetcher:
        """What fetches from a dataset of a kind."""
        if kind == _DatasetKind.Iterable:
            return IterableFetcher(dataset, auto_collation, collate_fn, drop_last)
        return MapFetcher(dataset, auto_collation, collate_fn)
