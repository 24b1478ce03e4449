"""Kernels of each element over numbers of 16 bits: what float32 gives, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import rushlight.kernels as k
from rushlight.kernels.dispatch import of_half_and_number
from rushlight.kernels.native.signatures import MAPS

NUMBERS: dict[str, tuple[float, ...]] = {
    "gelu": (1,), "gelu_backward": (0,), "softplus": (2.0, 3.0), "softplus_backward": (2.0, 3.0), "elu": (1.5, 2.0, 0.5),
    "elu_backward": (1.5, 2.0, 0.5), "elu_backward_of_input": (1.5, 2.0, 0.5), "logit_backward": (0.25, 0.75, np.nan),
    "clamp": (-0.5, 0.75), "between_backward": (-0.5, 0.75), "leaky_relu": (0.25,), "leaky_relu_backward": (0.25,),
    "huber": (0.5, 2.0), "huber_slope": (0.5, 2.0), "lerp": (0.75,), "scaled_sum": (0.75,), "hardshrink": (0.5,), "softshrink": (0.5,),
    "whole_power": (-2,), "whole_power_backward": (6,), "finite": (1.0, 2.0, -2.0),
}  # fmt: skip
NAMES = sorted(name for name in MAPS if name != "relu_backward_mask")


def kernel(name: str) -> Any:
    """The kernel of a name; of an array and a number the one of two arrays, beside that number."""
    if not name.endswith("_by"):
        return getattr(k, name)
    pair = getattr(k, name.removesuffix("_by"))
    return lambda x: pair(x, 0.75)


def numbers(seed: int, size: int, kind: Any) -> Any:
    found = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    special = np.array([0, -0.0, np.nan, np.inf, -np.inf, 6e-8, -1e-39, 1, -1, 0.5, 700], np.float32)
    found[: len(special)] = np.roll(special, seed)
    return found.astype(kind)


@pytest.mark.parametrize("kind", [bfloat16, np.float16])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_elements(name: str, kind: Any) -> None:
    count = MAPS[name].count("a") - 1
    for size in (11, 31, 513, 70_001):
        arrays = [numbers(seed, size, kind) for seed in range(count)]
        run, given = kernel(name), NUMBERS.get(name, ())
        with np.errstate(all="ignore"):
            want = run(*[a.astype(np.float32) for a in arrays], *given).astype(kind)
            made = run(*arrays, *given)
            apart = run(*[np.repeat(a, 2)[::2] for a in arrays], *given)
        assert made.dtype == kind
        # of NumPy's forms, which stand in where there are no native kernels, the last bit may differ
        for found in (made, apart):
            np.testing.assert_allclose(found.astype(np.float32), want.astype(np.float32), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("kind", [bfloat16, np.float16])
def test_gradients_behind_a_mask(kind: Any) -> None:
    g, mask = numbers(0, 5001, kind), np.random.default_rng(0).random(5001) < 0.5
    np.testing.assert_array_equal(k.relu_backward(g, mask).view(np.uint16), np.where(mask, g, kind(0)).view(np.uint16))


@pytest.mark.parametrize("kind", [bfloat16, np.float16])
@pytest.mark.parametrize("fn", [np.add, np.subtract, np.multiply, np.divide])
def test_a_number_that_16_bits_do_not_hold(fn: Any, kind: Any) -> None:
    x = numbers(0, 5001, kind)
    for first in (False, True):
        found = of_half_and_number(fn, x, 0.1, first)
        wide = x.astype(np.float32)
        with np.errstate(all="ignore"):
            want = (fn(np.float32(0.1), wide) if first else fn(wide, np.float32(0.1))).astype(kind)
        if found is not None:
            np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))
    assert of_half_and_number(np.maximum, x, 0.1, False) is None
