"""NumPy's ufuncs over numbers of 16 bits: what float32 gives, rounded once, whatever the layout."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from rushlight import kernels
from rushlight.kernels.native import loader, ufuncs

SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, 6e-8, 7e-5, 65504, 1, -1], np.float32)  # fmt: skip
EACH = pytest.mark.parametrize("kind", [bfloat16, np.float16])
WARNS = pytest.mark.skipif(not loader.tables(), reason="no native kernels here: the loops of ml_dtypes warn")


def numbers(seed: int, shape: tuple[int, ...], kind: Any) -> Any:
    found = (np.random.default_rng(seed).standard_normal(shape) * 3).astype(np.float32)
    found.flat[: len(SPECIAL)] = np.roll(SPECIAL, seed)
    with np.errstate(all="ignore"):
        return found.astype(kind)


def bits(x: Any) -> Any:
    """Numbers as they lie, every NaN as one."""
    if x.dtype == np.bool_:
        return x
    return np.where(np.isnan(x.astype(np.float32)), np.uint16(0x7FC0), np.ascontiguousarray(x).view(np.uint16))


def wanted(name: str, *arrays: Any) -> Any:
    found = getattr(np, name)(*[a.astype(np.float32) for a in arrays])
    return found if found.dtype == np.bool_ else found.astype(arrays[0].dtype)


@EACH
@pytest.mark.parametrize("name", [*(name for name in ufuncs.PAIRS if name != "nextafter"), *ufuncs.TRUTHS])
def test_pairs(name: str, kind: Any) -> None:
    loader.tables()
    x, y = numbers(0, (70, 700), kind), numbers(1, (70, 700), kind)
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (x, y[3, 7]), (x[2, 9], y), (x, y[0]), (x, y[:, :1]), (x[:, ::2], y[:, ::2]), (x.T, y.T), (x[:1, :5], y[:1, :5])):  # fmt: skip
            found, want = bits(getattr(np, name)(a, b)), bits(wanted(name, a, b))
            if kind is np.float16 and name in ("maximum", "minimum"):  # of zeros of both signs NumPy takes the first
                found, want = np.where(found == 0x8000, 0, found), np.where(want == 0x8000, 0, want)
            np.testing.assert_array_equal(found, want)


def _next(x: int, y: int, kind: Any) -> int:
    """The bits of the next number, by the definition: of one sign numbers are in the order of their bits."""
    infinite, own = (0x7C00, x) if kind is np.float16 else (0x7F80, y)
    a, b = x & 0x7FFF, y & 0x7FFF
    left, right = (-a if x >> 15 else a), (-b if y >> 15 else b)
    if max(a, b) > infinite:
        return 0x7FC0
    if left == right:
        return own
    if a == 0:
        return (y & 0x8000) | 1
    return x + 1 if (right > left) == (x < 0x8000) else x - 1


@EACH
def test_next_numbers(kind: Any) -> None:
    loader.tables()
    every = np.arange(1 << 16, dtype=np.uint16)
    for y in (0, 1, 0x8000, 0x8001, 0x3C00, 0xBF80, 0x7BFF, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FFF):
        other = np.full(1 << 16, y, np.uint16)
        want = np.array([_next(x, y, kind) for x in range(1 << 16)], np.uint16).view(kind)
        with np.errstate(all="ignore"):
            found = np.nextafter(every.view(kind), other.view(kind))
            apart = np.nextafter(every.view(kind)[::3], other.view(kind)[::3])
        np.testing.assert_array_equal(bits(found), bits(want))
        np.testing.assert_array_equal(bits(apart), bits(want)[::3])
    with pytest.warns(RuntimeWarning, match="overflow") if kind is np.float16 else contextlib.nullcontext():
        np.nextafter(np.full(4000, np.finfo(kind).max if kind is np.float16 else 1, kind), np.array(np.inf, kind))


@EACH
def test_of_equal_numbers_the_layout_does_not_choose(kind: Any) -> None:
    loader.tables()
    x, y = np.zeros((2, 600), kind), -np.zeros((2, 600), kind)
    for fn in (np.maximum, np.minimum):
        for a, b in ((x, y), (y, x)):
            np.testing.assert_array_equal(bits(fn(a, b))[:, ::2], bits(fn(a[:, ::2], b[:, ::2])))


@EACH
@pytest.mark.parametrize("name", [*ufuncs.SINGLES, *ufuncs.KINDS])
def test_singles(name: str, kind: Any) -> None:
    loader.tables()
    x = numbers(2, (70, 700), kind)
    with np.errstate(all="ignore"):
        for a in (x, x[:, ::3], x.T, x[0, :3], x[0, 5]):
            np.testing.assert_array_equal(bits(np.asarray(getattr(np, name)(a))), bits(np.asarray(wanted(name, a))))


def test_copies_of_bfloat16() -> None:
    loader.tables()
    x = numbers(0, (37, 530), bfloat16)
    words = x.view(np.uint16)
    for at in (np.s_[:], np.s_[::2, ::3], np.s_[::-1, ::-1], np.s_[:, :1], np.s_[3, 7]):
        np.testing.assert_array_equal(x[at].copy().view(np.uint16), words[at])
        np.testing.assert_array_equal(np.ascontiguousarray(x[at].T).view(np.uint16), words[at].T)
        np.testing.assert_array_equal(np.full_like(x, x[3, 7]).view(np.uint16), np.full_like(words, words[3, 7]))
        np.testing.assert_array_equal(x[at].byteswap().view(np.uint16), words[at].byteswap())
    for to, of in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1]), (np.s_[::-1], np.s_[:])):
        moved, wanted = x.copy(), words.copy()
        moved[to], wanted[to] = moved[of], wanted[of]
        np.testing.assert_array_equal(moved.view(np.uint16), wanted)
    odd = np.frombuffer(b"." + words.tobytes(), bfloat16, offset=1).reshape(x.shape)  # which begins at an odd address
    np.testing.assert_array_equal(odd[:, ::3].copy().view(np.uint16), words[:, ::3])
    np.testing.assert_array_equal((odd[:, :1] + x).view(np.uint16), (x[:, :1] + x).view(np.uint16))
    swapped = x.copy()
    assert swapped.byteswap(inplace=True) is swapped
    np.testing.assert_array_equal(swapped.view(np.uint16), words.byteswap())


@EACH
@pytest.mark.parametrize("name", ufuncs.FUNCTIONS)
@WARNS
def test_functions_of_every_number(name: str, kind: Any) -> None:
    loader.tables()
    every, fn = np.arange(1 << 16, dtype=np.uint16).view(kind), getattr(np, name)
    with np.errstate(all="ignore"):
        want = bits(wanted(name, every))
        np.testing.assert_array_equal(bits(fn(every)), want)
        np.testing.assert_array_equal(bits(fn(every[::-3])), want[::-3])
        np.testing.assert_array_equal(bits(fn(every.reshape(256, 256).T)), want.reshape(256, 256).T)
        own = every.copy()
        np.testing.assert_array_equal(bits(fn(own[:3000], out=own[:3000])), want[:3000])


@EACH
@pytest.mark.parametrize("name", ufuncs.FUNCTIONS_OF_TWO)
@WARNS
def test_functions_of_two(name: str, kind: Any) -> None:
    loader.tables()
    x, y = numbers(0, (70, 1700), kind), numbers(1, (70, 1700), kind)
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (x, y[3, 7]), (x[2, 9], y), (x, y[0]), (x, y[:, :1]), (x[:, ::2], y[:, ::-2]), (x.T, y.T)):
            np.testing.assert_array_equal(bits(getattr(np, name)(a, b)), bits(wanted(name, a, b)))


@EACH
@WARNS
def test_functions_of_two_along_rows_and_of_what_they_wrote(kind: Any) -> None:
    loader.tables()
    x = np.abs(numbers(3, (3, 2500), kind)[:, 20:])
    for name in ("logaddexp", "fmax", "hypot"):
        fn, wide = getattr(np, name), x.astype(np.float32)
        np.testing.assert_array_equal(bits(fn.reduce(x, axis=1)), bits(fn.reduce(wide, axis=1).astype(kind)))
        np.testing.assert_array_equal(
            bits(fn.reduce(x[:, ::2], axis=1)), bits(fn.reduce(wide[:, ::2], axis=1).astype(kind))
        )
        step, own = x[0, :1].copy(), fn.accumulate(x[0])
        for i in range(1, 100):
            step = fn(step, x[0, i : i + 1])
            assert bits(step) == bits(own[i : i + 1])


@EACH
def test_every_number_of_16_bits_is_read_and_written_as_it_is(kind: Any) -> None:
    loader.tables()
    every = np.arange(1 << 16, dtype=np.uint16).view(kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits(np.negative(np.negative(every))), bits(every))
        np.testing.assert_array_equal(bits(every * kind(1)), bits(every))


@EACH
def test_what_depends_on_what_was_written_is_done_in_order(kind: Any) -> None:
    loader.tables()
    ones = np.ones(200, kind)
    np.testing.assert_array_equal(np.add.accumulate(ones).astype(int), np.arange(1, 201))
    assert np.add.reduce(ones) == 200
    x = ones.copy()
    np.add(x[:-1], x[1:], out=x[1:])  # NumPy makes a copy where the memory of both overlaps
    assert x[-1] == 2
    x += x
    assert x[-1] == 4 and x[0] == 2


@EACH
@WARNS
def test_the_greatest_and_the_least_of_rows(kind: Any) -> None:
    loader.tables()
    x = numbers(3, (9, 3001), kind)
    x[4:] = np.where(np.isnan(x[4:].astype(np.float32)), kind(0), x[4:])
    x[7, 2999], x[8, 700] = np.nan, -np.inf
    for fn in (np.maximum, np.minimum):
        for axis in (0, 1, None):
            for part in (x, x[4:7], x[:, :600], x[:, ::2]):
                want = fn.reduce(part.astype(np.float32), axis=axis)
                np.testing.assert_array_equal(np.asarray(fn.reduce(part, axis=axis)).astype(np.float32), want)


def test_sums_of_float16_are_those_of_numpy() -> None:
    """In float32, rounded once: to add number by number would stay at 2048."""
    loader.tables()
    assert np.add.reduce(np.ones(5000, np.float16)) == 5000
    assert np.add.reduce(np.ones((5000, 3), np.float16), axis=1).tolist() == [3] * 5000


@EACH
@WARNS
def test_not_a_number_is_no_reason_to_warn(kind: Any) -> None:
    loader.tables()
    x = np.full(5000, np.nan, kind)
    for name in (*ufuncs.TRUTHS, "maximum", "minimum", "add", "multiply"):
        for other in (np.ones(5000, kind), kind(1)):
            getattr(np, name)(x, other)  # warnings are errors here
    for name in ufuncs.KINDS:
        getattr(np, name)(x)


def test_what_leaves_the_range_is_told_as_before() -> None:
    loader.tables()
    x = np.full(5000, 60000, np.float16)
    with pytest.warns(RuntimeWarning, match="overflow"):
        np.add(x[:1000], x[:1000])  # as many as one thread takes
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.divide(x[:1000], np.float16(0))


@WARNS
def test_all_loops_are_taken() -> None:
    """Whether ml_dtypes registers its own of NumPy's older kind or, from 0.7 on, of the newer."""
    wanted = {
        (name, kinds[0]) for number in (ufuncs.BFLOAT16, ufuncs.FLOAT16) for name, kinds in ufuncs._signatures(number)
    }
    assert wanted == ufuncs.TAKEN


def test_a_library_without_loops_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufuncs, "TAKEN", set())
    assert not ufuncs.install(object()) and not ufuncs.TAKEN


def test_loops_are_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that hands on to itself would never end."""
    loader.tables()
    monkeypatch.setattr(loader, "_tables", None)
    loader.tables()
    x = np.ones((50, 50), np.float16)
    assert (x[:, ::2] + x[:, ::2]).astype(int).tolist() == [[2] * 25] * 50


@EACH
@pytest.mark.parametrize("name", ["exp", "arctan", "power", "fmax"])
def test_large_arrays_go_through_all_threads_with_the_same_bits(name: str, kind: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(100_001).astype(kind) for _ in range(2))
    x[[0, 40_000, -1]] = np.nan, np.inf, -np.inf
    fn: Any = getattr(np, name)
    given = ((x,), (x[::-1],), (x[::3],)) if fn.nin == 1 else ((x, y), (x, y[::-1]), (x, y[7]), (x[::3], y[::3]))
    before, found = kernels.get_num_threads(), []
    for threads in (1, 2):
        kernels.set_num_threads(threads)
        with np.errstate(all="ignore"):
            found.append([fn(*operands) for operands in given])
    kernels.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one.view(np.uint16), two.view(np.uint16))


@EACH
def test_warnings_come_from_every_part_of_large_arrays(kind: Any) -> None:
    x, before = np.ones(100_001, kind), kernels.get_num_threads()
    kernels.set_num_threads(2)
    x[-1] = -1
    with pytest.warns(RuntimeWarning, match="invalid value"):
        np.log(x)
    kernels.set_num_threads(before)
