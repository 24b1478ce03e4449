"""Random compositions of stores, hooks and checkpoint on random nets: gradients are those without, bit for bit; what a
lossy store gives back is within what it declares."""

import warnings
from pathlib import Path

import pytest
from tests.stores.nets import Checked, compose

from rushlight.stores import StoreWarning


def play(seeds: range, dir: Path, lossy: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        assert sum(compose(seed, dir, lossy) for seed in seeds) > len(seeds) / 2
    assert list(dir.iterdir()) == []


@pytest.mark.parametrize("part", range(4))
def test_exact_compositions(part: int, tmp_path: Path) -> None:
    play(range(40 * part, 40 * part + 40), tmp_path, False)


def test_lossy_compositions(tmp_path: Path) -> None:
    before = Checked.checks
    play(range(40), tmp_path, True)
    assert Checked.checks - before > 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_many_exact_compositions(part: int, tmp_path: Path) -> None:
    play(range(1000 + 100 * part, 1100 + 100 * part), tmp_path, False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_many_lossy_compositions(part: int, tmp_path: Path) -> None:
    play(range(1000 + 100 * part, 1100 + 100 * part), tmp_path, True)
