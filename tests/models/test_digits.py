"""The digits that ship with the package."""

import numpy as np

from rushlight import datasets


def test_digits_are_whole() -> None:
    images, labels = datasets.digits()
    assert images.shape == (1797, 8, 8) and images.dtype == np.uint8
    assert labels.shape == (1797,) and labels.dtype == np.int64
    assert int(images.max()) == 16 and set(labels.tolist()) == set(range(10))
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_look_like_digits() -> None:
    """The nearest mean image names nine digits of ten."""
    images, labels = datasets.digits()
    flat = images.reshape(len(images), -1).astype(float)
    means = np.stack([flat[labels == digit].mean(0) for digit in range(10)])
    nearest = ((flat[:, None] - means) ** 2).sum(-1).argmin(1)
    assert (nearest == labels).mean() > 0.9
