"""Batches out of samples."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.foreign import is_theirs
from rushlight.dispatch import functions as ops
from rushlight.ops.create.create import as_tensor, tensor
from rushlight.tensor import Tensor, strided, wrap

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_TEXT = "SaUO"  # kinds of NumPy arrays that cannot become tensors
np_str_obj_array_pattern = re.compile(f"[{_TEXT}]")  # of their dtype's text: a name that other packages import


def default_convert(data: object) -> Any:
    """NumPy arrays and scalars, also within lists, tuples and mappings, as tensors; everything else as it is."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in _TEXT else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(d) for d in data])
    return data


def _mapping(like: Any, items: dict[Any, Any]) -> object:
    """A mapping of the type of `like`, if it can be made, else a dictionary."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(items)
            return clone
        return type(like)(items)
    except TypeError:
        return items


def _sequence(like: Any, items: list[Any]) -> object:
    """A sequence of the type of `like`, if it can be made, else a list."""
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(like)(items)
    except TypeError:
        return items


def collate(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """A batch out of samples: by the function of `collate_fn_map` for their type, or within containers.

    Raises TypeError for samples of a type that no function is known for.
    """
    first, table = batch[0], collate_fn_map or {}
    for kind, function in table.items():
        if type(first) is kind:
            return function(batch, collate_fn_map=table)
    for kind, function in table.items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=table)
    if isinstance(first, Mapping):
        return _mapping(first, {key: collate([d[key] for d in batch], collate_fn_map=table) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequence(batch, table)
    raise TypeError(_unknown(type(first)))


def _collate_sequence(batch: Any, table: dict[Any, Any]) -> object:
    first = batch[0]
    if not all(len(sample) == len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=table) for column in zip(*batch, strict=True)]
    if isinstance(first, tuple):
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _sequence(first, columns)


default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _unknown(what: object) -> str:
    theirs = isinstance(what, type) and is_theirs(what)
    return default_collate_err_msg_format.format(
        f"{what} of PyTorch: give rushlight.from_numpy(x.numpy())" if theirs else what
    )


def _tensors(batch: Any, *, collate_fn_map: object = None) -> Tensor:
    if any(getattr(each, "layout", strided) is not strided for each in batch):
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn: give the DataLoader one of your own, "
            "for instance torch.stack"
        )
    return ops.stack(list(batch), 0)


def _arrays(batch: Any, *, collate_fn_map: object = None) -> Tensor:
    first = batch[0]
    if first.dtype.kind in _TEXT:
        raise TypeError(_unknown(first.dtype))
    if not all(hasattr(array, "dtype") for array in batch):
        return tensor(list(batch))  # Python's numbers among NumPy's
    shapes = [array.shape for array in batch]
    if any(shape != shapes[0] for shape in shapes):
        i = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(shapes[0])} at entry 0 and {list(shapes[i])} "
            f"at entry {i}"
        )
    if any(array.dtype != first.dtype for array in batch):
        return _tensors([wrap(np.asarray(array)) for array in batch])  # which promotes as tensors do
    as_tensor(first)  # which refuses dates, numbers in another order of bytes, and what else no tensor holds
    return wrap(np.stack([np.asarray(array) for array in batch]))


def _floats(batch: Any, *, collate_fn_map: object = None) -> Tensor:
    numbers = np.array(batch)
    if numbers.dtype.kind in "fiub":
        return wrap(numbers.astype(np.float64, copy=False))
    return tensor(list(batch), dtype=dtypes.float64)  # which refuses None and texts


def _ints(batch: Any, *, collate_fn_map: object = None) -> Tensor:
    return tensor(list(batch))  # of all numbers' kind: floats among them make it one of floats


def _as_is(batch: object, *, collate_fn_map: object = None) -> object:
    return batch


# Under PyTorch's names, by which other packages import them.
collate_tensor_fn, collate_numpy_array_fn, collate_numpy_scalar_fn = _tensors, _arrays, _arrays
collate_float_fn, collate_int_fn, collate_str_fn = _floats, _ints, _as_is

default_collate_fn_map: dict[Any, Any] = {
    Tensor: _tensors,
    np.ndarray: _arrays,
    (np.bool_, np.number, np.object_): _arrays,
    float: _floats,
    int: _ints,
    str: _as_is,
    bytes: _as_is,
}


def default_collate(batch: object) -> Any:
    """A batch out of samples: tensors and arrays stacked, numbers as a tensor, containers of batches.

    >>> import rushlight as torch
    >>> torch.utils.data.default_collate([(torch.ones(2), 0), (torch.zeros(2), 1)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([0, 1])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
