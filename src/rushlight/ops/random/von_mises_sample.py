"""Angles of the von Mises distribution."""

from __future__ import annotations

import numpy as np

from rushlight.dispatch import randomness
from rushlight.dispatch.declare import Array
from rushlight.dispatch.registry import op
from rushlight.generator import Generator
from rushlight.ops.elementwise.shared import nothing
from rushlight.ops.random.random import source
from rushlight.tensor import Tensor


@op(half=None, grads={"loc": lambda g, loc: nothing(loc),
                                                 "concentration": lambda g, concentration: nothing(concentration)})  # fmt: skip
def von_mises_op(loc: Array, concentration: Array, generator: Generator | None) -> Array:
    """Angles in [-pi, pi).  (*), (*) -> (*)"""
    where, k = np.broadcast_arrays(loc.astype(np.float64), concentration.astype(np.float64))
    r, rng = proposal(k), source(generator)
    # Nothing is accepted where the angle is all but certain, or any angle as likely, or the concentration is no number.
    angle = np.where(np.isnan(k), np.nan, 0.0)
    done = ~(np.isfinite(r) & (r > 1))
    with np.errstate(all="ignore"):
        while not done.all():
            # As PyTorch draws: three numbers for each angle, again for all while one is not accepted.
            u = rng.random((3, *k.shape))
            z = np.cos(np.pi * u[0])
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = (c * (2 - c) - u[1] > 0) | (np.log(c / u[1]) + 1 - c >= 0)
            accepted &= np.isfinite(r) & (r > 1)
            angle = np.where(accepted, np.sign(u[2] - 0.5) * np.arccos(f), angle)
            done |= accepted
        even = k == 0
        if even.any():
            angle[even] = np.pi * (2 * rng.random(int(even.sum())) - 1)
    return np.asarray((angle + np.pi + where) % (2 * np.pi) - np.pi).astype(loc.dtype)


def proposal(k: Array) -> Array:
    """The parameter of the wrapped Cauchy distribution from which angles are proposed, of concentrations.  (*) -> (*)"""
    with np.errstate(all="ignore"):
        tau = 1 + np.sqrt(1 + 4 * k * k)
        rho = (tau - np.sqrt(2 * tau)) / (2 * k)
        return np.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))


def von_mises(loc: Tensor, concentration: Tensor, generator: Generator | None = None) -> Tensor:
    """Angles around `loc`, in [-pi, pi).  (*), (*) -> (*)

    By rejection from a wrapped Cauchy distribution (Best and Fisher, Efficient simulation of the von Mises distribution,
    Applied Statistics 28, 1979), in float64.
    """
    return von_mises_op(randomness.apart(loc), concentration, generator)
