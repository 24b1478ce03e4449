"""Places of the greatest elements of windows that begin and end anywhere: natively as by a search through each window."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels

SHAPES = [
    ((2, 3, 17), (5,)),
    ((1, 2, 130), (9,)),
    ((2, 3, 12, 40), (7, 5)),
    ((3, 2, 20, 7), (1, 7)),
    ((2, 2, 5, 6, 33), (3, 2, 8)),
]


def windows(rng: Any, planes: int, size: int, out: int) -> tuple[Any, Any]:
    starts = rng.integers(0, size, (planes, out))
    return starts, starts + 1 + rng.integers(0, size - starts)


def searched(x: Any, starts: Any, ends: Any) -> Any:
    """Window by window; the lead of x is one dimension."""
    sizes = [start.shape[1] for start in starts]
    made = np.empty((len(x), *sizes), np.int64)
    places = np.arange(x[0].size).reshape(x.shape[1:])
    for p, *cell in itertools.product(range(len(x)), *map(range, sizes)):
        low, high = (
            [int(each[min(p, len(each) - 1), i]) for each, i in zip(all_of, cell, strict=True)]
            for all_of in (starts, ends)
        )
        window = tuple(itertools.starmap(slice, zip(low, high, strict=True)))
        values = x[p][window].ravel()
        nan = np.flatnonzero(values != values)
        made[(p, *cell)] = places[window].ravel()[nan[-1] if nan.size else values.argmax()]
    return made


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ml_dtypes.bfloat16, "i8"])
@pytest.mark.parametrize("each", [False, True], ids=["alike", "of each plane"])
@pytest.mark.parametrize(("shape", "sizes"), SHAPES)
def test_places(path: str, rng: Any, shape: Any, sizes: Any, each: bool, dtype: Any) -> None:
    planes = shape[0] * shape[1]
    for kind in ("normal", "equal", "nan"):
        x = rng.standard_normal(shape) * 9 if kind == "normal" else rng.integers(-2, 3, shape).astype("f8")
        if kind == "nan" and dtype != "i8":
            x[rng.random(shape) < 0.1], x[rng.random(shape) < 0.5] = np.nan, -np.inf
        x = x.astype(dtype)
        bounds = [windows(rng, planes if each else 1, n, out) for n, out in zip(shape[2:], sizes, strict=True)]
        starts, ends = (tuple(pair[i] for pair in bounds) for i in (0, 1))
        found = kernels.window_maxima(x, starts, ends)
        assert found.dtype == np.int64 and found.shape == (*shape[:2], *sizes)
        wide = x.astype("f4") if x.itemsize == 2 else x
        want = searched(wide.reshape(planes, *shape[2:]), starts, ends)
        np.testing.assert_array_equal(found.reshape(want.shape), want)


def test_strided_and_empty_arrays(path: str, rng: Any) -> None:
    x, starts, ends = rng.standard_normal((2, 3, 40, 12)).astype("f4"), np.array([[0, 3]]), np.array([[2, 9]])
    turned = np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3)
    found, want = (kernels.window_maxima(a, (starts,) * 2, (ends,) * 2) for a in (turned[:, ::2], x[:, ::2].copy()))
    np.testing.assert_array_equal(found, want)
    assert kernels.window_maxima(x[:0], (starts,) * 2, (ends,) * 2).shape == (0, 3, 2, 2)
    assert kernels.window_maxima(x, (starts, starts[:, :0]), (ends, ends[:, :0])).shape == (2, 3, 2, 0)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (0, 5), (2, 2)])
def test_windows_outside_are_refused(start: int, end: int) -> None:
    from rushlight.kernels.native import loader

    if not loader.tables():
        pytest.skip("no native kernels here")
    with pytest.raises(RuntimeError, match="inside"):
        kernels.window_maxima(np.ones((2, 4), np.float32), (np.array([[start]]),), (np.array([[end]]),))
