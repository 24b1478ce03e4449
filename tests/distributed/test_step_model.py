"""The model that says how long steps of several processes take."""

from __future__ import annotations

import pytest
from benchmarks import step_model
from benchmarks.step_model import Block, Link

LINK = Link(1e-3, 1e6)


@pytest.mark.parametrize(
    "operation, count, size, seconds",
    [
        (step_model.all_reduce, 2, 1e6, 2e-3 + 1),
        (step_model.all_reduce, 8, 1e6, 6e-3 + 2 * 7 / 8),
        (step_model.all_reduce, 8, 1000, 3e-3 + 3e-3),
        (step_model.all_reduce, 6, 1e6, 4e-3 + 2 * 3 / 4 + 2 * (1e-3 + 1)),
        (step_model.all_gather, 8, 1e5, 3e-3 + 7 / 80),
        (step_model.all_gather, 8, 1e6, 7 * (1e-3 + 1 / 8)),
        (step_model.broadcast, 8, 1000, 3 * (1e-3 + 1e-3)),
        (step_model.all_reduce, 1, 1e6, 0),
        (step_model.all_gather, 1, 1e6, 0),
    ],
)
def test_collectives_take_what_the_formulas_say(operation, count, size, seconds):
    assert operation(LINK, count, size).seconds == pytest.approx(seconds)


BLOCKS = [Block([1e5], 0.1, 0.2)] * 4  # a tenth of a second each on the link


def test_a_step_takes_its_computing_and_what_is_not_hidden_behind_it():
    for way in (step_model.ddp, step_model.fully_shard):
        assert way(LINK, 1, BLOCKS) == pytest.approx(1.2)
    # Buckets go while the next is computed: the last of them does not.
    assert step_model.ddp(LINK, 2, BLOCKS, cap=1e5) == pytest.approx(1.2 + 0.1 + 2e-3)
    # The first gather is waited for, and each reduction; there are four.
    assert step_model.fully_shard(LINK, 2, BLOCKS) == pytest.approx(1.2 + 5 * (0.05 + 1e-3) + 0.05 + 1e-3)
    # Where the link is slow, its bytes are what counts: 2 P (n - 1) / n and 3 P (n - 1) / n.
    slow = Link(0, 1e3)
    assert step_model.ddp(slow, 2, BLOCKS) == pytest.approx(2 * 4e5 / 2 / 1e3, rel=0.01)
    assert step_model.fully_shard(slow, 2, BLOCKS) == pytest.approx(3 * 4e5 / 2 / 1e3, rel=0.01)


def test_a_thousand_processes():
    blocks = step_model.vit_l(10.0)
    for way in step_model.WAYS.values():
        times = [way(Link(1e-3, 125e6), count, blocks) for count in (2, 8, 64, 512, 1024)]
        assert times == sorted(times)
