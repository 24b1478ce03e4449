"""Codes by frequency and words without zeros: native code against its reference, and bits that nobody wrote."""

from typing import Any

import numpy as np
import pytest

from rushlight.kernels import entropy
from rushlight.kernels.native import loader
from rushlight.kernels.reference import entropy as reference

RNG = np.random.default_rng(7)
SIZES = [1, 2, 3, 4, 5, 7, 100, entropy.CHUNK - 1, entropy.CHUNK + 1, 2 * entropy.CHUNK + 77]


def golden(n: int) -> Any:
    """Bytes of which each is seen 0.62 times as often as the one before: codes by frequency alone would be longer than allowed."""
    return np.minimum(np.floor(-np.log(RNG.random(n) + 1e-300) / 0.48), 255).astype(np.uint8)


def arrays(n: int) -> list[tuple[Any, int]]:
    """Arrays of n elements, with masks of bytes that get codes."""
    x = RNG.standard_normal(n)
    zeros = np.zeros(n, np.float32)
    return [(x.astype(np.float32), 8), (x.astype(np.float32), 15), (zeros, 12), (x, 0b11000000), (x.astype(np.float16), 2),
            ((40 * x).astype(np.int8), 1), (golden(n), 1), (RNG.integers(0, 256, n).astype(np.uint8), 1)]  # fmt: skip


@pytest.mark.parametrize("n", SIZES)
def test_codes_are_those_of_the_reference_and_come_back(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for array, mask in arrays(n):
        data, width = array.view(np.uint8), array.itemsize
        parts = entropy.coded(data, width, mask)
        with monkeypatch.context() as without:
            without.setattr(loader, "tables", dict)
            for ours, theirs in zip(parts, entropy.coded(data, width, mask), strict=True):
                np.testing.assert_array_equal(ours, theirs)
            slow = np.empty_like(data)
            entropy.decoded(parts, width, mask, slow)
        fast = np.empty_like(data)
        entropy.decoded(parts, width, mask, fast)
        np.testing.assert_array_equal(fast, data)
        np.testing.assert_array_equal(slow, data)


def test_no_code_is_longer_than_its_table_and_all_bits_are_used() -> None:
    weights = [int(1.618**k) for k in range(40, 0, -1)]
    lengths = reference.frequency_lengths(weights)
    assert max(lengths) == reference.LONGEST and lengths == sorted(lengths)
    assert sum(2.0**-n for n in lengths) == 1
    assert reference.frequency_lengths([3, 1]) == [1, 1]


def test_bytes_come_near_their_entropy() -> None:
    data = RNG.standard_normal(1 << 18).astype(np.float32).view(np.uint8)
    parts = entropy.coded(data, 4, 8)
    share = np.bincount(data[3::4], minlength=256) / (data.size // 4)
    least = -(share[share > 0] * np.log2(share[share > 0])).sum() / 8 * data.size / 4
    assert least < sum(part.nbytes for part in parts[:3]) < 1.06 * least


@pytest.mark.parametrize("native", [True, False], ids=["native", "reference"])
def test_bits_that_nobody_wrote_are_told_or_harmless(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bytes say, nothing outside the arrays is read or written."""
    if not native:
        monkeypatch.setattr(loader, "tables", dict)
    data = golden(3000)
    parts = entropy.coded(data, 1, 1)
    told = 0
    for i in range(60):
        damaged = [part.copy() for part in parts]
        where = damaged[i % 3]
        where[RNG.integers(0, where.size, 3)] = RNG.integers(0, 255, 3)
        try:
            entropy.decoded(damaged, 1, 1, np.empty_like(data))
        except RuntimeError as error:
            assert "elements 0 to 3000" in str(error)
            told += 1
    assert told > 30


@pytest.mark.parametrize("n", SIZES)
def test_words_without_zeros(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        words = (RNG.integers(0, 200, n) * (RNG.random(n) < 0.4)).astype(kind)
        bits, kept = entropy.squeezed(words)
        np.testing.assert_array_equal(kept, words[words != 0])
        with monkeypatch.context() as without:
            without.setattr(loader, "tables", dict)
            np.testing.assert_array_equal(entropy.squeezed(words)[0], bits)
        found = np.empty_like(words)
        entropy.spread([bits, kept], found)
        np.testing.assert_array_equal(found, words)


def test_what_is_handed_over_is_checked() -> None:
    data = np.zeros(12, np.uint8)
    with pytest.raises(RuntimeError, match="data: expected"):
        entropy.coded(data, 3, 1)
