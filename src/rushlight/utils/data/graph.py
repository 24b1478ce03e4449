"""Which datapipes a datapipe is made of."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any

from rushlight.basics.caller import warn
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe[Any] | MapDataPipe[Any]
DataPipeGraph = dict[int, tuple[DataPipe, Any]]


class _Listing(pickle.Pickler):
    """Pickles an object to find the datapipes in it, which are not pickled themselves."""

    def __init__(self, root: DataPipe):
        super().__init__(io.BytesIO())
        self.root, self.found = root, dict[int, DataPipe]()

    def persistent_id(self, obj: object) -> int | None:
        """What stands for a datapipe."""
        if obj is self.root or not isinstance(obj, (IterDataPipe, MapDataPipe)):
            return None
        self.found[id(obj)] = obj
        return id(obj)

    def reducer_override(self, obj: object) -> Any:
        """Functions and classes are looked at by nobody: they may be ones that cannot be pickled."""
        return (
            (str, ("",))
            if callable(obj) and obj is not str and not isinstance(obj, (IterDataPipe, MapDataPipe))
            else NotImplemented
        )


def _sources(pipe: DataPipe, only_datapipe: bool) -> list[DataPipe]:
    """The datapipes that one holds: among its attributes, and in what these hold."""
    if only_datapipe:
        return [v for v in _attributes(pipe) if isinstance(v, (IterDataPipe, MapDataPipe))]
    listing = _Listing(pipe)
    try:
        listing.dump(pipe)
    except (TypeError, AttributeError, pickle.PicklingError):  # what cannot be pickled holds none that is seen
        pass
    return list(listing.found.values())


def _attributes(pipe: DataPipe) -> Iterator[object]:
    """The attributes of a datapipe, and the elements of those that are lists or tuples."""
    for value in vars(pipe).values():
        yield from value if isinstance(value, (list, tuple)) else (value,)


def _walk(pipe: DataPipe, only_datapipe: bool, seen: set[int]) -> DataPipeGraph:
    if not isinstance(pipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in seen:
        return {}
    inner: DataPipeGraph = {}
    for source in _sources(pipe, only_datapipe):
        inner.update(_walk(source, only_datapipe, {*seen, id(pipe)}))
    return {id(pipe): (pipe, inner)}


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The datapipes that one is made of: {id: (datapipe, the same of those that it holds as attributes)}."""
    return _walk(datapipe, True, set())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """As `traverse_dps`; only_datapipe=False also finds datapipes in what attributes hold.  Deprecated."""
    warn("traverse is deprecated: use traverse_dps, or say only_datapipe", FutureWarning)
    return _walk(datapipe, bool(only_datapipe), set())
