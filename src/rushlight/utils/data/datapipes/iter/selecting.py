"""Datapipes that leave elements out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]

T_co = TypeVar("T_co", covariant=True)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[T_co]):
    """The elements for which `filter_fn`, of the element or of some of its columns, is True.

    Raises ValueError where it gives no bool.
    """

    def __init__(self, datapipe: IterDataPipe[T_co], filter_fn: Callable[..., bool], input_col: Any = None) -> None:
        _check_unpickable_fn(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        validate_input_col(filter_fn, input_col)

    def _apply_filter_fn(self, data: Any) -> bool:
        of = self.input_col
        if of is None:
            return self.filter_fn(data)
        return self.filter_fn(*(data[col] for col in of)) if isinstance(of, (list, tuple)) else self.filter_fn(data[of])

    def __iter__(self) -> Iterator[T_co]:
        for data in self.datapipe:
            kept = self._apply_filter_fn(data)
            if not isinstance(kept, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(kept)}")
            if kept:
                yield data
