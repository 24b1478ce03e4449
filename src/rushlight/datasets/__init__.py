"""Small real data that ships with the package, so that the demo and the tests need no network."""

from importlib import resources

import numpy as np
import numpy.typing as npt

__all__ = ["digits"]


def digits() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The 1,797 handwritten digits of the UCI test set, in the order of the collection.

    Returns ``(images, labels)``: uint8 of shape (1797, 8, 8) with values 0..16, and int64 of shape
    (1797,) with values 0..9.  Source, citation and licence (CC BY 4.0) are in ``digits.txt`` beside
    the data.

    >>> from rushlight.datasets import digits
    >>> images, labels = digits()
    >>> images.shape, labels[:5].tolist()
    ((1797, 8, 8), [0, 1, 2, 3, 4])
    """
    path = resources.files("rushlight.datasets").joinpath("digits.npz")
    with path.open("rb") as file, np.load(file) as arrays:
        return arrays["images"], arrays["labels"].astype(np.int64)
