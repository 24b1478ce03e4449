"""A budget around random nets with random stores, hooks and checkpoints, everything idle sent away again and again."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.memory.awake import awake, waking
from tests.memory.figures import native
from tests.stores import nets

from rushlight import memory
from rushlight.memory.budgets import pager, pages
from rushlight.stores import StoreWarning
from rushlight.stores.files import Spill

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


@native
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("early", [True, False])
def test_gradients_are_those_without(early: bool, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, plain, pack, sums = random.Random(part), nets.gradients, pager.Pager.pack, [0, 0]

    def pack_and_send(self: Any, tensor: Any) -> Any:
        kept = pack(self, tensor)
        if rng.random() < 0.5:
            self.free(0, rng.random() < 0.5)
        return kept

    def gradients(net: Any, x: Any, contexts: Any, *args: Any) -> Any:
        if not contexts and not any(net.around):
            return plain(net, x, contexts, *args)  # what the others are compared with
        slow = rng.choice([0.0, 1.0, 1.0])
        monkeypatch.setattr(Spill, "seconds_per_byte", lambda spill, guess: slow)
        around = awake("1 TB", spill=tmp_path) if early else waking(rng.randrange(1, 10_000), tmp_path)
        with around as b:
            found = plain(net, x, contexts, *args)
        sums[0] += b.report().again
        sums[1] += sum(b.report().moved_out.values())
        return found

    monkeypatch.setattr(pages, "SMALL", 1)
    monkeypatch.setattr(pager.Pager, "pack", pack_and_send)
    monkeypatch.setattr(nets, "gradients", gradients)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        for seed in range(40 * part, 40 * part + 40):
            nets.compose(seed, tmp_path, False)
    assert min(sums) > (10_000 if early else 1_000) and list(tmp_path.iterdir()) == []
