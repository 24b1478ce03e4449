"""Connectionist temporal classification: native against NumPy, lengths of all kinds, memory in another order."""

from __future__ import annotations

import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels.reference import ctc as reference

LENGTHS = [([12, 12, 7], [5, 0, 3]), ([0, 12, 1], [2, 1, 1]), ([0, 3, 12], [0, 5, 2])]  # of inputs, of labels


def case(
    rng: np.random.Generator, steps: list[int], sizes: list[int], dtype: str, classes: int = 6
) -> tuple[np.ndarray, K.Paths]:
    logits = rng.standard_normal((12, len(steps), classes))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    labels = rng.integers(1, classes, (len(steps), 5))
    labels[0, 1] = labels[0, 0]  # repeated, so that a blank comes between
    return log_probs.astype(dtype), K.Paths(labels, np.array(steps), np.array(sizes), 0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("steps", "sizes"), LENGTHS)
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_as_in_numpy(
    path: str, rng: np.random.Generator, steps: list[int], sizes: list[int], dtype: str, zero_infinity: bool
) -> None:
    log_probs, paths = case(rng, steps, sizes, dtype)
    rtol, g = (2e-4, 1e-4) if dtype == "f4" else (1e-10, 1e-10), rng.standard_normal(len(steps)).astype(dtype)
    wanted = reference.ctc_backward(g, log_probs, paths, zero_infinity)
    turned = np.ascontiguousarray(log_probs.swapaxes(0, 1)).swapaxes(0, 1)
    for x in (log_probs, turned, np.repeat(log_probs, 2, 2)[..., ::2]):
        np.testing.assert_allclose(K.ctc(x, paths), reference.ctc(log_probs, paths), rtol[0])
        np.testing.assert_allclose(K.ctc_backward(g, x, paths, zero_infinity), wanted, rtol[0], rtol[1])


def test_many_states_and_samples(path: str, rng: np.random.Generator) -> None:
    logits = rng.standard_normal((80, 33, 40))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    paths = K.Paths(rng.integers(1, 40, (33, 29)), rng.integers(60, 81, 33), rng.integers(0, 30, 33), 0)
    g = np.ones(33)
    np.testing.assert_allclose(K.ctc(log_probs, paths), reference.ctc(log_probs, paths), 1e-10)
    want = reference.ctc_backward(g, log_probs, paths, False)
    np.testing.assert_allclose(K.ctc_backward(g, log_probs, paths, False), want, 1e-8, 1e-10)


def test_nan_and_impossible_steps(path: str, rng: np.random.Generator) -> None:
    log_probs, paths = case(rng, [12, 12, 12], [3, 3, 3], "f4")
    log_probs[4, 0] = np.nan
    log_probs[4, 1] = -np.inf
    losses = K.ctc(log_probs, paths)
    assert np.isnan(losses[0]) and losses[1] == np.inf and np.isfinite(losses[2])
    slopes = K.ctc_backward(np.ones(3, "f4"), log_probs, paths, True)
    assert np.isnan(slopes[:, 0]).any() and not slopes[:, 1].any() and np.isfinite(slopes[:, 2]).all()
