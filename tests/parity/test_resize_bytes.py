"""Resizing uint8 images gives PyTorch's bytes."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

WAYS = [{"size": (4, 4)}, {"size": (13, 3)}, {"size": (30, 2)}, {"scale_factor": 0.5}, {"scale_factor": (0.3, 2.2)}]


CASES = [
    (mode, antialias, align)
    for mode in ("bilinear", "bicubic")
    for antialias in (False, True)
    for align in (None, True)
]


@pytest.mark.parametrize("mode, antialias, align", [*CASES, ("lanczos", True, None)])
def test_bytes_are_the_same(mode, antialias, align):
    rng = np.random.default_rng(0)
    for shape in ((2, 3, 7, 5), (1, 1, 16, 16), (1, 4, 9, 20), (1, 3, 100, 75)):
        image = rng.integers(0, 256, shape).astype(np.uint8)
        for way in WAYS:
            ours, theirs = (
                t.nn.functional.interpolate(
                    t.from_numpy(image), mode=mode, antialias=antialias, align_corners=align, **way
                ).numpy()
                for t in (rushlight, torch)
            )
            np.testing.assert_array_equal(ours, theirs)


def test_lanczos_in_numbers_and_its_gradient():
    told = []
    for t in (rushlight, torch):
        x = (t.arange(90, dtype=t.float64).reshape(1, 2, 9, 5) % 7).requires_grad_()
        y = t.nn.functional.interpolate(x, (4, 6), mode="lanczos", antialias=True)
        (y * y).sum().backward()
        told.append((y.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*told, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
