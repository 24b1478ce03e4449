"""Maps of a few taps along dimensions: natively as by NumPy, bit by bit, of every width, in one pass or dimension by dimension."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels
from rushlight.kernels import Taps
from rushlight.kernels.reference import resample as reference

SHAPES = [
    ((2, 3, 9), (2,), (21,)),
    ((1, 2, 130), (2,), (40,)),
    ((2, 3, 5, 7), (2, 3), (9, 3)),
    ((1, 2, 33, 70), (2, 3), (16, 150)),
    ((2, 7, 9, 3), (1, 2), (13, 20)),
    ((2, 7, 9, 40), (1, 2), (3, 20)),
    ((1, 2, 3, 4, 5), (2, 3, 4), (7, 2, 40)),
    ((2, 3, 4, 30, 17), (1, 2, 3), (5, 9, 11)),
]


def drawn(rng: Any, kind: str, size: int, out: int) -> Taps:
    """Taps in no order, of which some outputs have none, or as many of each."""
    if kind == "picked":
        return Taps.of(size, rng.integers(0, size, (out, 1)))
    if kind == "even":
        index = np.minimum(np.arange(out)[:, None] * size // out + np.arange(4), size - 1)
        return Taps.of(size, index, rng.standard_normal(index.shape))
    counts = rng.integers(kind == "mean", 5, out)
    index = rng.integers(0, size, counts.sum())
    weights = rng.standard_normal(len(index)) if kind == "weighted" else None
    return Taps(size, np.concatenate([[0], np.cumsum(counts)]), index, weights, kind == "mean")


def maps_of(rng: Any, kind: str, shape: Any, dims: Any, sizes: Any) -> tuple[Taps, ...]:
    return tuple(drawn(rng, kind, shape[d], n) for d, n in zip(dims, sizes, strict=True))


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ml_dtypes.bfloat16, "c8"])
@pytest.mark.parametrize("kind", ["even", "weighted", "plain", "mean", "picked"])
@pytest.mark.parametrize(("shape", "dims", "sizes"), SHAPES)
def test_one_pass_is_dimension_by_dimension(path: str, rng: Any, shape: Any, dims: Any, sizes: Any, kind: str, dtype: Any) -> None:  # fmt: skip
    x, taps = rng.standard_normal(shape).astype(dtype), maps_of(rng, kind, shape, dims, sizes)
    wide = x.astype("f4") if x.itemsize == 2 else x
    for maps, given in ((taps, wide), (tuple(t.turned for t in taps), None)):
        if given is None:
            given = reference.resample(wide, dims, taps).astype(dtype).astype(wide.dtype)
        found, want = kernels.resample(given.astype(dtype), dims, maps), reference.resample(given, dims, maps)
        assert found.dtype == dtype and found.flags.c_contiguous
        assert found.tobytes() == want.astype(dtype).tobytes()


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "i8", "f2", "f8", "c16", ml_dtypes.bfloat16])
@pytest.mark.parametrize(("shape", "dims", "sizes"), SHAPES)
def test_any_elements_are_picked(path: str, rng: Any, shape: Any, dims: Any, sizes: Any, dtype: Any) -> None:
    x, taps = rng.integers(0, 200, shape).astype(dtype), maps_of(rng, "picked", shape, dims, sizes)
    found = kernels.resample(x, dims, taps)
    want = x[tuple(np.ix_(*[taps[dims.index(d)].index if d in dims else np.arange(n) for d, n in enumerate(shape)]))]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["even", "weighted", "plain", "mean", "picked"])
def test_the_turned_map_is_the_adjoint(path: str, rng: Any, kind: str, dtype: str) -> None:
    taps = maps_of(rng, kind, (20, 33), (0, 1), (11, 70))
    x, g = rng.standard_normal((20, 33)).astype(dtype), rng.standard_normal((11, 70)).astype(dtype)
    ahead = (kernels.resample(x, (0, 1), taps) * g).sum()
    back = (x * kernels.resample(g, (0, 1), tuple(t.turned for t in taps))).sum()
    np.testing.assert_allclose(
        ahead, back, rtol=1e-4 if dtype == "f4" else 1e-10, atol=1e-4 if dtype == "f4" else 1e-10
    )


def test_long_windows_are_averaged(path: str, rng: Any) -> None:
    starts = np.array([0, 400, 1000, 1008])
    taps = Taps(1000, starts, np.concatenate([np.arange(400), np.arange(300, 900), np.arange(8)]), mean=True)
    x = rng.standard_normal((5, 1000))
    for dtype, error in (("f8", 1e-13), ("f4", 1e-6), ("f2", 1e-3)):
        found = kernels.resample(x.astype(dtype), (1,), (taps,))
        want = np.stack([x.astype(dtype)[:, a:b].mean(1, dtype="f8") for a, b in ((0, 400), (300, 900), (0, 8))], 1)
        np.testing.assert_allclose(found, want, atol=error)


def test_what_an_output_is_not_made_of_does_not_reach_it(path: str) -> None:
    taps = Taps(40, np.array([0, 2, 3, 3]), np.array([0, 1, 39]), np.array([1.0, 2.0, 3.0]))
    x = np.full((1, 40), np.nan, np.float32)
    x[0, :2], x[0, 39] = 1, np.inf
    assert kernels.resample(x, (1,), (taps,)).tolist() == [[3, np.inf, 0]]


def test_zeros_keep_their_sign_but_in_averages(path: str) -> None:
    x = np.full((2, 40), -0.0, np.float32)
    one = Taps.of(40, np.arange(40)[:, None], np.ones((40, 1)))
    assert np.signbit(kernels.resample(x, (0, 1), (Taps.of(2, np.array([[0], [1]])), one))).all()
    mean = Taps(40, np.arange(41), np.arange(40), mean=True)
    assert not np.signbit(kernels.resample(x, (1,), (mean,))).any()


def test_empty_arrays(path: str) -> None:
    taps = Taps.of(3, np.array([[0, 1], [1, 2]]), np.ones((2, 2)))
    assert kernels.resample(np.ones((0, 3), np.float32), (1,), (taps,)).shape == (0, 2)
    assert kernels.resample(np.ones((2, 3, 0), np.float32), (1,), (taps,)).shape == (2, 2, 0)
    none = Taps(3, np.array([0]), np.array([], np.int64), np.array([]))
    assert kernels.resample(np.ones((2, 3), np.float32), (1,), (none,)).shape == (2, 0)


def test_places_outside_are_refused() -> None:
    from rushlight.kernels.native import loader

    if not loader.tables():
        pytest.skip("no native kernels here")
    for index in (-1, 3):
        for weights in (None, np.ones(1)):
            taps = Taps(3, np.array([0, 1]), np.array([index]), weights)
            with pytest.raises(RuntimeError, match="inside"):
                kernels.resample(np.ones((2, 3), np.float32), (1,), (taps,))
