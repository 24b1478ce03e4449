"""Layouts of the arrays that optimizers work on."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex, real_of
from rushlight.basics.eights import EIGHTS, refuse


def as_real(array: Array) -> Array:
    """A complex array as the reals that it consists of, in a last dimension of size 2; a real array as it is."""
    if array.itemsize == 1 and array.dtype in EIGHTS:
        refuse("step of an optimizer", array.dtype)
    if not is_complex(array.dtype):
        return array
    real = real_of(array)
    return np.lib.stride_tricks.as_strided(real, (*array.shape, 2), (*array.strides, real.itemsize))


def zeros_like(array: Any, dtype: object = None) -> Array:
    """Zeros in the memory order of `array`, of its dtype or another, untouched until used where the system can do so."""
    dtype = array.dtype if dtype is None else dtype
    if array.flags.c_contiguous:
        return np.zeros(array.shape, dtype)
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    zeros = np.zeros([array.shape[axis] for axis in order], dtype)
    return zeros.transpose(np.argsort(order))
