"""What is done to a list of tensors in one native call, in the usual case; None or False says that it is not that, and nothing was done.

That case: tensors of class Tensor of one dtype, float32 or float64, in no mode but those that decide what is recorded, with nothing
to record.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics.arrays import Array
from rushlight.basics.state import RECORDED, UNRECORDED, modes, special, way_of
from rushlight.engine.inplace import written
from rushlight.kernels.dispatch import FLOAT32
from rushlight.levels import owned
from rushlight.storage import dependents
from rushlight.tensor import Tensor

FLOAT64 = np.dtype(np.float64)


def _usual(tensors: list[Tensor]) -> bool:
    """Whether a list is what native calls are for."""
    return _fit(tensors, way_of(tensors) if special.count else RECORDED)


def _fit(tensors: list[Tensor], way: int, elsewhere: bool = False) -> bool:
    """Whether they are tensors of such a list, where they are recorded so; elsewhere: or such as a budget moves."""
    if not way or not tensors:
        return False
    dtype = _dtype(tensors[0])
    if dtype is not FLOAT32 and dtype is not FLOAT64:
        return False
    for t in tensors:
        if (
            (t.__class__ is not Tensor and not (elsewhere and _moved(t)))
            or t._unusual
            or _dtype(t) is not dtype
            or (way is RECORDED and t.requires_grad)
        ):
            return False
    return True


def _moved(t: Tensor) -> bool:
    """Whether a budget moves the array of a tensor, which is of class Tensor to others."""
    return t._elsewhere and getattr(t, "stands_for", None) is Tensor


def _dtype(t: Tensor) -> np.dtype[Any]:
    """The dtype of a tensor's array, which is not brought back for that."""
    outline = t._on_disk() if t._elsewhere and _moved(t) else None
    return (t._held if outline is None else outline[0]).dtype


def _one_by_one(tensors: list[Tensor]) -> bool:
    """Whether they are such tensors, of which hooks for what is saved and observers change nothing: a budget may keep some away."""
    if modes.grad or (special.meta is not None and special.meta.owns(tensors)):
        return False
    if modes.levels and (owned(tuple(tensors)) or any(level.dry for level in modes.levels)):
        return False
    return _fit(tensors, UNRECORDED, elsewhere=True)


def norms(tensors: list[Tensor]) -> Array | None:
    """The 2-norm of each, as an array of their dtype: the same numbers within a budget or a store."""
    if _usual(tensors):
        found = kernels.squares_of_each([t._array for t in tensors])
    elif _one_by_one(tensors):
        found = np.array([kernels.squares_of_each([t._array])[0] for t in tensors])
    else:
        return None
    return np.sqrt(found).astype(tensors[0].dtype.numpy)


def multiply(tensors: list[Tensor], factor: float) -> bool:
    """Multiply each by a number, in place."""
    if not _changed(tensors, "mul_"):
        return False
    kernels.multiply_each([t._array for t in tensors], factor)
    return True


def clamp(tensors: list[Tensor], least: float, most: float) -> bool:
    """Bring the elements of each into [least, most], in place."""
    if not _changed(tensors, "clamp_"):
        return False
    kernels.clamp_each([t._array for t in tensors], least, most)
    return True


def _changed(tensors: list[Tensor], name: str) -> bool:
    """Whether all may be changed in one call; if so, they are counted as changed by operator `name`."""
    if dependents or not _usual(tensors) or any(0 in t._held.strides for t in tensors):
        return False
    for t in tensors:
        written(t, name)
    return True
