"""Datapipes that call a function: on each element, or on each batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, sized
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """`fn(element)`, or with `input_col` the function of one or several of an element's columns.

    output_col: where the result goes: None, in the place of (the first of) what it was computed of, others being taken
    away; -1, behind the others; else that column. Raises ValueError for columns that do not fit the function.

    >>> import rushlight as torch
    >>> pipe = torch.utils.data.datapipes.iter.IterableWrapper([(1, 2), (3, 4)])
    >>> list(pipe.map(str, input_col=1))
    [(1, '2'), (3, '4')]
    """

    def __init__(
        self, datapipe: IterDataPipe[Any], fn: Callable[..., Any], input_col: Any = None, output_col: object = None
    ) -> None:
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        """The element of the result."""
        of, to = self.input_col, self.output_col
        if of is None:
            return self.fn(data)
        several = isinstance(of, (list, tuple))
        found = self.fn(*(data[col] for col in of)) if several else self.fn(data[of])
        made = list(data) if isinstance(data, tuple) else copy.copy(data)
        if to == -1 and to is not None:
            made.append(found)
        else:
            _put(made, found, of, to)
        return tuple(made) if isinstance(data, tuple) else made

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return sized(self, [self.datapipe])[0]


def _put(made: Any, found: Any, of: Any, to: Any) -> None:
    """Put a result into a column, or in the place of those that it was computed of."""
    if to is not None:
        made[to] = found
    elif isinstance(of, (list, tuple)):
        made[of[0]] = found
        for col in sorted(of[1:], reverse=True):
            del made[col]
    else:
        made[of] = found


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors: `conversion(batch)`, which is `default_collate` unless given."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        conversion: Callable[..., Any] | None = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)  # type: ignore[arg-type]
