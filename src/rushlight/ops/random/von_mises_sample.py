"""Angles of the von Mises distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.dispatch import randomness
from rushlight.dispatch.declare import Array
from rushlight.dispatch.registry import op
from rushlight.ops.elementwise.shared import nothing
from rushlight.ops.random.random import source

if TYPE_CHECKING:
    from rushlight.tensor import Tensor


@op(ns=None, name="von_mises", half=None, grads={"loc": lambda g, loc: nothing(loc),
                                                 "concentration": lambda g, concentration: nothing(concentration)})  # fmt: skip
def von_mises_op(loc: Array, concentration: Array, generator: Any) -> Array:
    """Angles in [-pi, pi).  (*), (*) -> (*)"""
    found = source(generator).vonmises(0.0, concentration.astype(np.float64)) + loc.astype(np.float64)
    return np.asarray((found + np.pi) % (2 * np.pi) - np.pi).astype(loc.dtype)


def von_mises(loc: Tensor, concentration: Tensor, generator: Any = None) -> Tensor:
    """Angles around `loc`, in [-pi, pi).  (*), (*) -> (*)

    By rejection from a wrapped Cauchy distribution (Best and Fisher, Efficient simulation of the von Mises distribution,
    Applied Statistics 28, 1979), which is NumPy's, in float64.
    """
    return von_mises_op(randomness.apart(loc), concentration, generator)
