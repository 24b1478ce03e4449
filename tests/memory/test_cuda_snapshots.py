"""Snapshots of CUDA's allocator (cuda/, PyTorch 2.11 on an H200): where they are read, the user's own lines are told of."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rushlight import memory
from rushlight.memory.recordings.replay import breakdown

FILES = Path(__file__).parent / "cuda"
SCRIPT = "/home/user/train.py"


@pytest.fixture
def snapshot(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / f"{request.param}.pickle"
    path.write_bytes(gzip.decompress((FILES / f"{request.param}.pickle.gz").read_bytes()))
    return path


# `everything` has the stacks of native code too, and segments that expand, blocks of two streams.
@pytest.mark.parametrize("snapshot", ["plain", "everything", "refused"], indirect=True)
def test_lines_at_the_peak_are_the_users(snapshot: Path) -> None:
    lines = breakdown(memory.load(snapshot)).lines
    assert len(lines) > 1
    assert all(line.startswith(f"{SCRIPT}:") for line in lines if line), lines  # "": what has no stack, as in backward


@pytest.mark.parametrize("snapshot", ["plain"], indirect=True)
def test_the_weights_and_what_a_step_makes_are_told_apart_by_lines(snapshot: Path) -> None:
    lines = breakdown(memory.load(snapshot)).lines
    adam = 2 * 4 * (256 * 1024 + 1024 + 1024 * 10 + 10)
    assert adam <= lines[f"{SCRIPT}:16"] < adam + 8 * 512  # CUDA rounds each up to 512 bytes; the steps' counters
    assert lines[f"{SCRIPT}:23"] >= 4 * 512 * 256 + 8 * 512


@pytest.mark.parametrize("snapshot", ["refused"], indirect=True)
def test_what_was_refused_is_told(snapshot: Path) -> None:
    text = memory.text_report(snapshot, width=100)
    assert "out of memory: asked for 537 MB with 149 GB free on the device, at 3.31 s" in text


@pytest.mark.parametrize("snapshot", ["plain", "everything", "refused"], indirect=True)
def test_written_anew_it_says_the_same(snapshot: Path, tmp_path: Path) -> None:
    before = memory.load(snapshot)
    memory.save(before, tmp_path / "anew.pickle")
    after = memory.load(tmp_path / "anew.pickle")
    assert breakdown(after).lines == breakdown(before).lines
    assert breakdown(after).total == breakdown(before).total
    assert after.live().tolist() == before.live().tolist()
