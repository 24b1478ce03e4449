"""Gated linear units: the kernels against NumPy in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels as K

KINDS = {np.float32: 1e-6, np.float64: 1e-13, np.float16: 2e-3, ml_dtypes.bfloat16: 1e-2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "dim"), [((4, 6), 1), ((70, 80), 1), ((1, 40_002), 1), ((6, 900), 0), ((3, 8, 5, 70), 1)]
)
def test_gated_linear_units(rng: np.random.Generator, kind: Any, shape: tuple[int, ...], dim: int) -> None:
    x = rng.standard_normal(shape).astype(kind)
    a, b = np.split(x.astype(np.float64), 2, dim)
    g = rng.standard_normal(a.shape).astype(kind)
    s = 1 / (1 + np.exp(-b))
    wide = g.astype(np.float64)
    want = np.concatenate((wide * s, wide * a * s * (1 - s)), dim)
    for given in (x, np.repeat(x, 2, -1)[..., ::2]):
        out, grad = K.glu(given, dim), K.glu_backward(g, given, dim)
        assert out.dtype == grad.dtype == x.dtype
        np.testing.assert_allclose(out.astype(np.float64), a * s, rtol=KINDS[kind], atol=KINDS[kind])
        np.testing.assert_allclose(grad.astype(np.float64), want, rtol=KINDS[kind], atol=KINDS[kind])
    mixed = K.glu_backward(g.astype(np.float64), x, dim)
    np.testing.assert_allclose(mixed.astype(np.float64), want, rtol=KINDS[kind], atol=KINDS[kind])
