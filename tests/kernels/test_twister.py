"""Random numbers by native code and without: the same, from the same words."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.kernels.native import loader
from rushlight.kernels.twister import Twister, shuffle

F = rushlight.nn.functional
UNTEMPERED = 0x12DD9BB3  # of the state: the word drawn of it has all bits set

RATES = np.tile([0.0, 0.01, 0.7, 3.0, 9.99, 10.0, 40.0, 1e5], 50)
TRIALS, CHANCES = np.meshgrid([0.0, 1.0, 7.0, 100.0, 1e6], [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])

DRAWS: dict[str, Callable[[Twister], Any]] = {
    "random": lambda g: [g.random(n, dtype) for n in (1, 7, 624, 5000) for dtype in (np.float32, np.float64)],
    "into": lambda g: [g.random(out=np.empty((3, 5), np.float32)), g.random(out=np.empty(0))],
    "normal": lambda g: [g.standard_normal(n, dtype) for n in (1, 15, 16, 21, 5000) for dtype in (np.float32, np.float64)],
    "integers": lambda g: [g.integers(7, size=9), g.integers(-3, 3, 9, np.int8), g.integers(1 << 63, size=5), g.integers(5)],
    "orders": lambda g: [*(g.permutation(n) for n in (0, 1, 2, 1000))],
    "exponential": lambda g: [g.standard_exponential(n, dtype) for n in (1, 9, 10_000) for dtype in (np.float32, np.float64)],
    "others": lambda g: [g.geometric(0.3, 9), g.two_by_two(7), g.random(), g.poisson(3.0, 5)],
    "accepted": lambda g: [g.poissons(RATES), g.log_gammas(RATES), g.two_by_two(1), g.log_gammas(RATES), g.binomials(TRIALS, CHANCES), g.random()],
}  # fmt: skip
ROUNDED = {"normal": 2e-6, "exponential": 4e-16, "accepted": 1e-14}  # how far apart logarithms and sines are computed


@pytest.mark.parametrize("name", DRAWS)
def test_native_code_and_numpy_draw_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if loader.tables() == {}:
        pytest.skip("no native kernels here")
    natively = Twister(3)
    found = DRAWS[name](natively)
    monkeypatch.setattr(loader, "_tables", {})
    plain = Twister(3)
    for ours, theirs in zip(found, DRAWS[name](plain), strict=True):
        off = ROUNDED.get(name, 0.0)
        np.testing.assert_allclose(ours, theirs, rtol=off, atol=off)
    np.testing.assert_array_equal(natively.state(), plain.state())


def test_words_are_those_of_the_published_generator() -> None:
    """The 10,000th number of the seed 5489 is in the standard of C++."""
    assert int(Twister(5489).words(10_000)[-1]) == 4123659995


def test_generators_made_one_after_the_other_have_their_own_words() -> None:
    first, second = Twister(5), Twister(6)
    assert first.address != second.address
    drawn = first.random(7)
    np.testing.assert_array_equal(drawn, Twister(5).random(7))
    assert not np.array_equal(drawn, second.random(7))


def test_states_are_restored_wherever_they_were_taken() -> None:
    g = Twister(11)
    for count in (0, 1, 623, 624, 625):
        g.words(count)
        g.standard_normal(3)
        state = g.state()
        first = g.standard_normal(5), g.random(700)
        g.set_state(state)
        for ours, theirs in zip(first, (g.standard_normal(5), g.random(700)), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_threads_share_a_generator() -> None:
    g, found = Twister(0), []
    threads = [threading.Thread(target=lambda: found.append(g.words(624 * 50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = Twister(0).words(4 * 624 * 50)
    assert sorted(np.concatenate(found).tolist()) == sorted(wanted.tolist())


def test_a_shuffle_keeps_every_number() -> None:
    numbers = np.arange(1000)
    shuffle(numbers, np.random.default_rng(0).integers(0, np.arange(1000, 1, -1)))
    assert sorted(numbers.tolist()) == list(range(1000)) and numbers.tolist() != list(range(1000))


def test_words_that_are_no_state_are_refused_and_change_nothing() -> None:
    g = Twister(5)
    state = g.state()
    for place, value in ((2, 625), (2, 1 << 63), (100, 1 << 32)):
        damaged = state.copy()
        damaged[place] = value
        with pytest.raises(RuntimeError, match="RNG state is damaged"):
            g.set_state(damaged)
    np.testing.assert_array_equal(g.state(), state)


def test_a_seed_begins_again() -> None:
    g = Twister(2**64 - 1)
    g.standard_normal(3)
    g.reseed(7)
    np.testing.assert_array_equal(g.state(), Twister(7).state())
    np.testing.assert_array_equal(g.words(700), Twister(7).words(700))
    assert int(Twister(2**64 - 1).state()[0]) == 2**64 - 1


def test_what_would_be_rounded_to_the_end_of_a_range_is_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for tables in ("native", "none"):
        if tables == "none":
            monkeypatch.setattr(loader, "_tables", {})
        g = Twister(0)
        state = g.state()
        state[2], state[1] = 1, 624 | 1 << 32
        state[4 : 4 + 3] = [0, 0xFFFFFFFF, UNTEMPERED]
        g.set_state(state)
        found[tables] = np.empty(3, np.float32)
        g.evenly(1.0, 2.0, found[tables])
    assert found["native"].tolist() == found["none"].tolist()
    assert found["native"][2] == 1.0
    assert (found["native"] < 2).all()


def test_what_pytorch_has_not_is_numpys() -> None:
    """Arguments that are arrays are NumPy's to draw by, from the same words."""
    g = Twister(0)
    assert g.permutation(np.arange(5.0)).shape == (5,)
    assert g.integers([1, 2], [3, 4]).shape == (2,)
    assert g.geometric([0.1, 0.9]).shape == (2,)
    assert g.permuted(np.arange(6).reshape(2, 3), axis=0).shape == (2, 3)


def test_threads_have_masks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for tables in (loader.tables(), {}):
        monkeypatch.setattr(loader, "_tables", tables)
        seen: list[bytes] = []

        def drop(seen: list[bytes] = seen) -> None:
            for count in (64, 30_000) * 20:
                seen.append(F.dropout(rushlight.ones(count)).numpy().tobytes())

        threads = [threading.Thread(target=drop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == len(seen) == 160
