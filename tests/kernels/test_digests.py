"""Numbers that tell bytes from others."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from rushlight.kernels.digests import crc32, digest
from rushlight.kernels.native import loader


@pytest.mark.parametrize("count", [0, 1, 7, 8, 31, 32, 33, 1000])
def test_every_changed_byte_is_told(count: int) -> None:
    data = np.random.default_rng(count).integers(0, 256, count, dtype=np.uint8)
    found = {digest(data)}
    for i in range(count):
        for bit in (0, 7):
            changed = data.copy()
            changed[i] ^= 1 << bit
            found.add(digest(changed))
    assert len(found) == 1 + 2 * count


def test_bytes_in_another_order_and_more_of_them_are_told() -> None:
    words = np.arange(64, dtype=np.uint64)
    found = {digest(np.roll(words, k).view(np.uint8)) for k in range(64)}
    zeros = {digest(np.zeros(count, np.uint8)) for count in range(100)}
    assert len(found) == 64
    assert len(zeros) == 100


def test_it_goes_on_from_what_stands_before() -> None:
    data = np.arange(100, dtype=np.uint8)
    assert digest(data, 1) != digest(data, 2)
    assert digest(data[50:], digest(data[:50])) == digest(data[50:].copy(), digest(data[:50]))


def test_without_native_kernels_it_is_that_of_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_tables", {})
    assert digest(np.arange(100, dtype=np.uint8), 3) == zlib.crc32(bytes(range(100)), 3)


@pytest.mark.parametrize("native", [True, False])
def test_the_checksum_of_archives_is_that_of_zlib(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(loader, "_tables", {})
    data = np.random.default_rng(0).integers(0, 256, 4200, dtype=np.uint8)
    for count in (*range(200), 4099):
        for start in (0, 12345, 2**32 - 1):
            assert crc32(data[3 : 3 + count], start) == zlib.crc32(data[3 : 3 + count].data, start)
    assert crc32(data[100:], crc32(data[:100])) == zlib.crc32(data.data)
