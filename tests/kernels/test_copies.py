"""Elements moved between arrays that lie in any way: what NumPy's assignment gives."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight
from rushlight.kernels.pointwise import copies

DTYPES = ["?", "u1", "f2", "f4", "i8", "c8", "c16", ml_dtypes.bfloat16]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays take the kernel, too."""
    monkeypatch.setattr(copies, "LARGE", 0)


def drawn(rng: np.random.Generator, dtype: Any) -> tuple[Any, Any]:
    """An array that lies anyhow, and a dense one of its shape whose axes are in another order."""
    ndim = int(rng.integers(1, 6))
    shape = rng.integers(1, [2, 300, 70, 40, 14, 9][ndim], ndim)
    x = rng.integers(0, 2 if dtype == "?" else 200, tuple(2 * shape + 2)).astype(dtype)
    for axis, size in enumerate(shape):
        step, start = rng.choice([1, 1, 2, -1]), rng.integers(0, 2)
        x = np.moveaxis(
            np.moveaxis(x, axis, 0)[start : start + size * abs(step) : abs(step)][:: np.sign(step)], 0, axis
        )
    if rng.random() < 0.3:
        x = np.broadcast_to(x[:1], x.shape)
    if rng.random() < 0.5:
        order = rng.permutation(ndim)
        x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    order = rng.permutation(ndim)
    return x, np.zeros(shape[order], dtype).transpose(np.argsort(order))


@pytest.mark.parametrize("dtype", DTYPES)
def test_move(path: str, rng: np.random.Generator, dtype: Any) -> None:
    for _ in range(150):
        x, out = drawn(rng, dtype)
        assert copies.move(x, out) is out
        np.testing.assert_array_equal(out, x)
        copy = copies.copied(x)
        assert copy.flags.c_contiguous and not np.may_share_memory(copy, x)
        np.testing.assert_array_equal(copy, x)


@pytest.mark.parametrize("shape", [(64, 64), (300, 17), (16, 256, 33), (2, 3, 50, 70)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_turned(path: str, rng: np.random.Generator, shape: Any, dtype: Any) -> None:
    x = rng.integers(0, 2, shape).astype(dtype)
    for turned in (x.T, np.moveaxis(x, 0, -1), x.swapaxes(-1, -2)):
        np.testing.assert_array_equal(copies.copied(turned), turned)


def test_into_parts(path: str, rng: np.random.Generator) -> None:
    x, row = rng.standard_normal((2, 90, 200))
    for part in (np.s_[:, ::2], np.s_[::-1], np.s_[10:, 5:-5], np.s_[:, 3]):
        found, want = x.copy(), x.copy()
        copies.move(row[part], found[part])
        want[part] = row[part]
        np.testing.assert_array_equal(found, want)
    copies.move(row[0], found)  # broadcast
    np.testing.assert_array_equal(found, np.broadcast_to(row[0], x.shape))
    copies.move(row.astype("f4"), found)  # cast
    np.testing.assert_array_equal(found, row.astype("f4"))


def test_what_overlaps(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal(1000)
    want = x.copy()
    want[1:] = x[:-1]
    np.testing.assert_array_equal(copies.move(x[:-1], x[1:]), want[1:])


def test_what_does_not_fit(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((30, 40))
    with pytest.raises(ValueError, match="broadcast"):
        copies.move(x, np.zeros((40, 30)))
    locked = np.zeros((30, 40))
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        copies.move(x, locked)
    objects = np.array([[1, "a"], [None, x]], object)
    assert copies.copied(objects.T)[0, 1] is None


@pytest.mark.parametrize("size", [3, 300])
def test_tensors(size: int) -> None:
    x = rushlight.randn(4, size, 5, 7)
    y = x.numpy()
    np.testing.assert_array_equal(
        x.permute(0, 2, 1, 3).reshape(4, 5, -1).numpy(), y.transpose(0, 2, 1, 3).reshape(4, 5, -1)
    )
    np.testing.assert_array_equal(x.permute(3, 1, 0, 2).contiguous().numpy(), y.transpose(3, 1, 0, 2))
    for dim in (0, 2, -1):
        np.testing.assert_array_equal(rushlight.cat([x, x.flip(1)], dim).numpy(), np.concatenate([y, y[:, ::-1]], dim))
        np.testing.assert_array_equal(rushlight.stack([x, x.flip(1)], dim).numpy(), np.stack([y, y[:, ::-1]], dim))
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        rushlight.cat([x, x[:, 1:]], 0)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        rushlight.stack([x, x[:, 1:]])


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 17])
def test_few_elements_that_go_together(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, channels: int
) -> None:
    monkeypatch.setattr(copies, "LARGE", 1 << 30)
    x = rng.standard_normal((70, 90, channels)).transpose(2, 0, 1)
    for a in (x[:, :, ::-1], x[:, ::-1], np.ascontiguousarray(x), np.broadcast_to(x[:, :1], x.shape)):
        out = np.zeros((70, 90, channels)).transpose(2, 0, 1)
        copies.move(a, out)
        np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("to", ["f4", "f8", "i4", "i8", "?", "i2", "u1", "c8"])
@pytest.mark.parametrize("of", ["f4", "f8", "i4", "i8", "u1", "?", "i2"])
def test_casts_are_those_of_numpy(rng: np.random.Generator, of: str, to: str) -> None:
    if of == to:
        return
    x = (
        (rng.standard_normal((130, 2_003)) * 100).astype(of)
        if of != "u1"
        else rng.integers(0, 255, (130, 2_003), np.uint8)
    )
    if of[0] == "f" and to[0] in "fi" and to != "i2":
        x[:3, :2] = [[np.nan, np.inf], [-np.inf, 1e30], [-1e30, -0.0]]
    for a in (x, x.T, x[:, ::2], x.reshape(-1)[1:]):
        with np.errstate(all="ignore"):
            want = a.astype(to)
            found = copies.cast(a, np.dtype(to))
        assert found.dtype == want.dtype and found.strides == want.strides
        np.testing.assert_array_equal(found, want)
        if to[0] == "f":
            np.testing.assert_array_equal(np.signbit(found), np.signbit(want))


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_channels_of_pixels(path: str, rng: np.random.Generator, dtype: str) -> None:
    """Three elements that stay together, from where nothing may lie before or behind them."""
    for height, width in ((1, 1), (1, 3), (2, 2), (9, 31)):
        x = rng.integers(0, 200, (height, width, 3)).astype(dtype)
        for seen in (x[:, ::-1], x[::-1], x[::-1, ::-1], x.transpose(1, 0, 2), x[:, ::2]):
            room = np.full(seen.size + 2, 7, dtype)
            out = room[1:-1].reshape(seen.shape)
            np.testing.assert_array_equal(copies.move(seen, out), seen)
            assert room[0] == room[-1] == 7
