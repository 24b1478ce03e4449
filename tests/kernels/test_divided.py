"""NumPy's ufuncs over large arrays on all threads: the bits, the warnings and the refusals of NumPy on one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.kernels.native import divided, loader

NATIVE = pytest.mark.skipif(not loader.tables(), reason="no native kernels here: NumPy's loops are its own")
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, 1, -1], np.float32)
LONG = 300_001  # enough for several threads, and no multiple of anything


def numbers(seed: int, dtype: str, size: int = LONG) -> Any:
    if np.dtype(dtype).kind != "f":
        return whole_numbers(seed, np.dtype(dtype), size)
    found = (np.random.default_rng(seed).standard_normal(size) * 3).astype(dtype)
    for start in (0, size // 2, size - len(SPECIAL)):
        found[start : start + len(SPECIAL)] = np.roll(SPECIAL, seed)
    return found


def whole_numbers(seed: int, dtype: np.dtype[Any], size: int) -> Any:
    """Small ones, zeros and the extremes among them; of bools both."""
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        return random.integers(0, 2, size).astype(bool)
    limits = np.iinfo(dtype)
    found = random.integers(max(limits.min, -9), 10, size).astype(dtype)
    for start in (0, size // 2, size - 3):
        found[start : start + 3] = np.roll(np.array([limits.min, limits.max, 0], dtype), seed)
    return found


def on(threads: int, run: Any) -> Any:
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(threads)
    try:
        return run()
    finally:
        rushlight.set_num_threads(before)


def same(run: Any) -> None:
    with np.errstate(all="ignore"):
        one, two = on(1, run), on(2, run)
    np.testing.assert_array_equal(one.view(np.uint8), two.view(np.uint8))


@NATIVE
def test_numpy_takes_all() -> None:
    assert [(name, kinds) for name, kinds, _ in divided._wanted()] == divided.DIVIDED


@pytest.mark.parametrize(("name", "kinds"), [(name, kinds) for name, kinds, _ in divided._wanted()])
def test_bits(name: str, kinds: str) -> None:
    ufunc, arrays = getattr(np, name), [numbers(seed, kinds[0]) for seed in range(len(kinds) - 1)]
    same(lambda: ufunc(*arrays))
    same(lambda: ufunc(*[x[::2] for x in arrays]))
    same(lambda: ufunc(*[x[::-1] for x in arrays]))
    if len(arrays) == 2:
        same(lambda: ufunc(arrays[0], arrays[1][7]))
        same(lambda: ufunc(arrays[0][7], arrays[1]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_is_read_and_written(dtype: str) -> None:
    """An operand that is the result, lies beside it, or partly in it; results with gaps; sums into one number, and running ones."""
    whole, other = numbers(1, dtype), numbers(2, dtype)

    def into(target: Any, *operands: Any) -> Any:
        def run() -> Any:
            memory = whole.copy()
            np.add(*(memory[x] if isinstance(x, slice) else x for x in operands), out=memory[target])
            return memory

        return run

    half = LONG // 2
    for target, *operands in (
        (slice(None), slice(None), other),
        (slice(None), slice(None), slice(None)),
        (slice(1, None), slice(None, -1), other[1:]),
        (slice(None, -1), slice(1, None), other[1:]),
        (slice(None), slice(None, None, -1), other),
        (slice(None, half), slice(half, 2 * half), slice(None, half)),
        (slice(None, None, 2), slice(None, None, 2), other[::2]),
        (slice(None, None, -1), slice(None), other),
    ):
        same(into(target, *operands))
    same(lambda: np.add.accumulate(whole))
    same(lambda: np.add.reduce(whole[20:-20][None], axis=1))
    same(lambda: np.add.reduce(np.stack([whole, other]), axis=0))
    same(lambda: np.multiply.accumulate(np.stack([whole, other]), axis=0))


@pytest.mark.parametrize("place", [0, LONG // 3, LONG // 2, LONG - 1])
def test_warnings_come_from_every_part(place: int) -> None:
    x = np.ones(LONG, np.float32)
    for value, run, words in (
        (0, lambda y: np.divide(x, y), "divide by zero"),
        (-1, np.sqrt, "invalid value"),
        (3e38, np.square, "overflow"),
    ):
        y = x.copy()
        y[place] = value
        with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match=words):
            on(2, lambda run=run, y=y: run(y))
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=words):
            on(2, lambda run=run, y=y: run(y))


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1"])
def test_quotients_of_whole_numbers_warn_from_every_part(dtype: str) -> None:
    x = np.ones(LONG, dtype)
    for place in (0, LONG // 3, LONG - 1):
        y = x.copy()
        y[place] = 0
        with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match="divide by zero"):
            assert on(2, lambda y=y: x // y)[place] == 0
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            on(2, lambda y=y: x % y)


def test_errors_of_whole_powers_are_raised() -> None:
    x = np.ones(LONG, np.int64)
    with pytest.raises(ValueError, match="negative integer powers"):
        on(2, lambda: x ** -np.ones(LONG, np.int64))


def test_no_warning_is_left_over() -> None:
    x = np.ones(LONG, np.float32)
    with np.errstate(all="ignore"):
        on(2, lambda: np.divide(x, 0))
    with np.errstate(all="warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        on(2, lambda: np.multiply(x, x))
        on(1, lambda: np.multiply(x[:10], x[:10]))


def test_without_an_interface_numpy_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided, "DIVIDED", [])
    divided.install(object())
    assert not divided.DIVIDED


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [600, LONG])
@pytest.mark.parametrize("threads", [1, 2])
def test_extremes(dtype: str, size: int, threads: int) -> None:
    """Of equal numbers the second, NaN where one is, without a warning: what NumPy's loops give, which are slow beside a number."""
    x, y = numbers(1, dtype)[:size], numbers(2, dtype)[:size]
    zero, nan = np.zeros((), dtype), np.full((), np.nan, dtype)
    for a, b in (
        (x, y),
        (x, zero),
        (zero, x),
        (-zero, x),
        (x, -zero),
        (x, nan),
        (x[::2], y[::2]),
        (x, x),
        (x[:, None], zero),
    ):
        for ufunc, better in ((np.maximum, np.greater), (np.minimum, np.less)):
            with np.errstate(all="ignore"):
                want = np.where(np.isnan(a), a, np.where(better(a, b), a, b)).astype(dtype)
            with np.errstate(all="raise"):
                found = on(threads, lambda: ufunc(a, b))  # noqa: B023
            np.testing.assert_array_equal(found, want)
            np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(want)[want == 0])
    into = x.copy()
    np.maximum(into, zero, out=into)
    np.testing.assert_array_equal(into, np.where(np.isnan(x), x, np.where(x > 0, x, zero)))
    np.testing.assert_array_equal(np.maximum.accumulate(into[~np.isnan(into)])[-1], np.nanmax(into))
