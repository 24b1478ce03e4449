"""linspace and frequencies take PyTorch's steps, bit by bit."""

import itertools

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", ["float32", "float64", "int64", "int16", "int8"])
def test_steps_are_the_same(name):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 11, 100, 1001):
        for _ in range(20):
            lo, hi = (rng.standard_normal(2) * 30).tolist()
            ours, theirs = (t.linspace(lo, hi, n, dtype=getattr(t, name)).numpy() for t in (rushlight, torch))
            close = {"rtol": 1e-15, "atol": 1e-14} if name == "float64" else {"rtol": 0}  # that is a bit
            np.testing.assert_allclose(ours, theirs, **close)


def test_bytes_wrap_around():
    assert rushlight.linspace(-1, 3, 3, dtype=rushlight.uint8).tolist() == [255, 129, 3]
    with pytest.raises(RuntimeError, match="without overflow"):
        rushlight.linspace(0, 300, 3, dtype=rushlight.int8)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frequencies_of_fft_are_the_same_to_the_bit(dtype: str) -> None:
    """They are compared and divided by again: torchoptics asks where a difference of their squares is 0."""
    for n, d in itertools.product((0, 1, 2, 7, 50, 1000), (1.0, 0.1, 0.3, -2.0, 1 / 44100)):
        for name in ("fftfreq", "rfftfreq"):
            ours = getattr(rushlight.fft, name)(n, d, dtype=getattr(rushlight, dtype))
            theirs = getattr(torch.fft, name)(n, d, dtype=getattr(torch, dtype))
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
