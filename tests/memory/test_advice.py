"""Advice is a replay of the recording; here the techniques are really applied, and the figures compared."""

from __future__ import annotations

import numpy as np
import pytest
from tests.memory import synthetic
from tests.memory.synthetic import MB

from rushlight import memory
from rushlight.memory.advice import techniques
from rushlight.memory.advice.whatif import Run, changes
from rushlight.memory.recordings import replay
from rushlight.memory.recordings.recording import CATEGORIES, Recording

SHAPES = {
    "large weights": {},
    "large activations": {"activation": 60 * MB, "steps": 4},
    "one layer": {"layers": 1},
    "many layers": {"layers": 20, "size": 2 * MB, "activation": 30 * MB},
    "no state": {"states": 0},
    "gradients cleared early": {"clear_early": True},
}


def predicted(technique: object, **options: object) -> int:
    run = Run(synthetic.training(**options))
    applied = technique(run)  # type: ignore[operator]
    return run.replay(applied.changes).peak if applied else run.actual.peak


def peak(**options: object) -> int:
    return synthetic.training(**options).peak()[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_optimizer_in_backward(shape: str) -> None:
    options = SHAPES[shape]
    assert predicted(techniques.optimizer_in_backward, **options) == peak(
        **{**options, "clear_early": False}, fused=True
    )


def test_optimizer_in_backward_with_temporaries_is_not_promised_too_much() -> None:
    found = predicted(techniques.optimizer_in_backward, out_of_place=True)
    real = peak(out_of_place=True, fused=True)
    assert real <= found <= real + 16 * MB


def test_optimizer_in_backward_is_not_proposed_where_gradients_accumulate() -> None:
    w = synthetic.Writer()
    w.before(MB, "parameter")
    w.phase("forward")
    w.phase("backward")
    grad = w.alloc(MB, "gradient")
    w.phase("forward")
    w.phase("backward")
    w.free(w.alloc(MB, "temporary"))
    w.phase("optimizer")
    w.free(grad)
    assert techniques.optimizer_in_backward(Run(w.done())) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_checkpointing(shape: str) -> None:
    options = SHAPES[shape]
    run = Run(synthetic.training(**options))
    blocks = techniques.saved(run)
    members = techniques.patterns(run, blocks).get("layers.*")
    assert members is not None
    applied = techniques.recomputed(run, blocks, members, "layers.*")
    assert applied.number == options.get("layers", 6)
    assert run.replay(applied.changes).peak == pytest.approx(peak(**options, checkpointed=True), rel=0.02)


@pytest.mark.parametrize("shape", ["large activations", "many layers"])
def test_the_best_part_to_recompute_is_found(shape: str) -> None:
    run = Run(synthetic.training(**SHAPES[shape]))
    applied = techniques.checkpointed(run)
    assert applied is not None and applied.what == "layers.*"


@pytest.mark.parametrize("shape", SHAPES)
def test_half_the_batch(shape: str) -> None:
    options = SHAPES[shape]
    assert predicted(techniques.half_the_batch, **options) == pytest.approx(peak(**options, batch=0.5), abs=100)


@pytest.mark.parametrize("shape", ["large weights", "large activations", "many layers"])
def test_without_state(shape: str) -> None:
    options = SHAPES[shape]
    bound = 2 * int(options.get("size", 16 * MB))
    found = predicted(techniques.without_state, **options)
    assert peak(**{**options, "states": 0}) <= found <= peak(**{**options, "states": 0}) + bound


def test_clearing_gradients_early() -> None:
    recording = synthetic.training(activation=60 * MB, late=True)
    run = Run(recording)
    applied = techniques.zero_grad_early(run)
    assert applied is not None
    assert run.replay(applied.changes).peak == peak(activation=60 * MB, clear_early=True) < recording.peak()[0]


@pytest.mark.parametrize("steps", [3, 5, 9])
def test_leaks(steps: int) -> None:
    recording = synthetic.training(steps=steps, leak=90 * MB)
    run = Run(recording)
    applied = techniques.leaked(run)
    assert applied is not None and applied.bytes == 90 * MB
    assert "clone at /home/me/vit/train.py:44 in train" in applied.what
    clean = run.replay(applied.changes).peak
    # The last two steps' blocks are not known to stay.
    assert peak(steps=steps) < clean <= peak(steps=steps) + 2 * 90 * MB
    assert techniques.leaked(Run(synthetic.training(steps=steps))) is None


def test_offloading_leaves_only_what_is_in_flight() -> None:
    options = {"layers": 20, "size": MB, "activation": 30 * MB}
    run = Run(synthetic.training(**options))
    applied = techniques.offloaded(run)
    assert applied is not None and applied.number == 240
    weights = 4 * 20 * MB
    assert run.replay(applied.changes).peak < 4 * weights + 7 * 30 * MB < peak(**options) / 3


def test_repeated_temporaries() -> None:
    w = synthetic.Writer()
    w.before(1, "parameter")
    w.phase("forward")
    held = [w.alloc(10 * MB, "temporary", "mul", "", (synthetic.line(5, "f"),)) for _ in range(4)]
    for block in held:
        w.free(block)
    found = {a.name: a for a in memory.advise(w.done())}
    assert found["temporaries"].after == 10 * MB + 1 and "4 temporaries" in found["temporaries"].text


def test_a_replay_of_nothing_is_the_recording() -> None:
    for recording in (synthetic.training(), synthetic.irregular(3000)):
        run = Run(recording)
        assert (run.actual.peak, run.actual.moment) == recording.peak()
        assert sum(run.actual.categories.values()) == run.actual.peak
        assert run.actual.categories == replay.breakdown(replay.settled(recording)).categories


def test_a_replay_without_blocks_is_the_recording_without_them() -> None:
    """Against a plain loop over events."""
    recording = synthetic.irregular(2000, seed=4)
    run, random = Run(recording), np.random.default_rng(0)
    blocks = random.choice(len(recording.size), 300, replace=False)
    birth, death = run.lives
    start = birth[blocks] + random.integers(0, 3, 300)
    stop = np.minimum(start + random.integers(0, 500, 300), death[blocks])
    what = changes(blocks, start, stop, recording.size[blocks])
    best = max(
        (int(run.live[m + 1]) - int(recording.size[blocks[(start <= m) & (stop > m)]].sum()), -m)
        for m in range(-1, run.end)
    )
    outcome = run.replay(what)
    assert (outcome.peak, -outcome.moment) == best and sum(outcome.categories.values()) == outcome.peak


@pytest.mark.parametrize("shape", SHAPES)
def test_every_piece_of_advice_adds_up(shape: str) -> None:
    recording = synthetic.training(**SHAPES[shape])
    found = memory.advise(recording)
    assert found and found == sorted(found, key=lambda a: a.after)
    for advice in found:
        assert advice.before == recording.peak()[0] and 0 < advice.after < advice.before
        assert sum(advice.categories.values()) == advice.after
        assert set(advice.categories) <= set(CATEGORIES)
        assert advice.title in str(advice) and "then dominate" in advice.text


def test_advice_on_little() -> None:
    assert memory.advise(synthetic.Writer().done()) == []
    assert all(a.after < a.before for a in memory.advise(synthetic.irregular(2000)))


def test_hindsight_keeps_all_bytes() -> None:
    recording: Recording = synthetic.training()
    settled = replay.settled(recording)
    assert settled.peak()[0] == recording.peak()[0] and settled.live()[-1] == recording.live()[-1]
    assert (replay.timeline(recording).sum(0)[1:] == recording.live()).all()
    assert (replay.timeline(recording) >= 0).all() and (replay.timeline(settled) >= 0).all()
