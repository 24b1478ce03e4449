"""Attention of bfloat16 by the processor's own instructions, against float64."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight.kernels import attention, products

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SIZES = [
    (1, 2, 1, 1, 1, 1),
    (2, 3, 17, 33, 8, 8),
    (1, 2, 64, 64, 64, 64),
    (2, 2, 130, 70, 40, 24),
    (1, 2, 100, 300, 20, 50),
]


def exact(g: Any, q: Any, k: Any, v: Any, mask: Any, causal: bool) -> tuple[Any, ...]:
    """Result, logarithms of rows' sums and gradients in float64."""
    g, q, k, v = (x.astype(float) for x in (g, q, k, v))
    scale = q.shape[-1] ** -0.5
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(float)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(-1, keepdims=True)
    p /= total
    d = g @ v.swapaxes(-1, -2)
    slopes = p * (d - (p * d).sum(-1, keepdims=True)) * scale
    turned = slopes.swapaxes(-1, -2)
    return p @ v, (top + np.log(total))[..., 0], slopes @ k, turned @ q, p.swapaxes(-1, -2) @ g


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["plain", "causal", "added", "bool"])
def test_attention(way: products.Way, rng: np.random.Generator, sizes: tuple[int, ...], kind: str) -> None:
    b, h, rows, columns, e, width = sizes
    q, k, v, g = (
        rng.standard_normal((b, n, h, w)).astype(BFLOAT16).swapaxes(1, 2)
        for n, w in ((rows, e), (columns, e), (columns, width), (rows, width))
    )
    mask: Any = None
    if kind == "added":
        mask = rng.standard_normal((rows, columns)).astype(BFLOAT16)
    if kind == "bool":
        mask = rng.random((b, 1, rows, columns)) < 0.7
        mask[..., 0] = True
    causal = kind == "causal"
    assert attention._in_pairs((q, k, v, g), mask) is not None
    out, lse = attention.sdpa(q, k, v, mask, causal)
    grads = attention.sdpa_backward(g, q, k, v, lse, mask, causal)
    for name, found, want in zip(
        "out lse gq gk gv".split(), (out, lse, *grads), exact(g, q, k, v, mask, causal), strict=True
    ):
        assert found is not None
        # Probabilities and slopes are rounded to eight bits, results once more.
        assert abs(found.astype(float) - want).max() <= 2**-7 * abs(want).max() + 2**-8, name


def test_rows_that_see_nothing_are_0(way: products.Way, rng: np.random.Generator) -> None:
    q, k, v, g = (rng.standard_normal((1, 2, 40, 16)).astype(BFLOAT16) for _ in range(4))
    mask = np.ones((40, 40), bool)
    mask[3] = False
    out, lse = attention.sdpa(q, k, v, mask)
    grads = attention.sdpa_backward(g, q, k, v, lse, mask)
    assert (out[:, :, 3] == 0).all() and np.isneginf(lse[:, :, 3]).all()
    assert grads[0] is not None and (grads[0][:, :, 3] == 0).all()
    assert all(np.isfinite(x.astype(float)).all() for x in grads if x is not None)


def test_one_nan_stays_in_its_row(way: products.Way, rng: np.random.Generator) -> None:
    q, k, v = (rng.standard_normal((1, 2, 70, 16)).astype(BFLOAT16) for _ in range(3))
    q[0, 0, 5, 0] = np.nan
    out = attention.sdpa(q, k, v)[0].astype(float)
    assert np.isnan(out[0, 0, 5]).all() and np.isnan(out).sum() == 16
