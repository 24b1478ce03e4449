"""The demo: its parts, and a short run of the whole."""

import contextlib
import json
import mmap
import os
import pty
import signal
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest

from rushlight.cli import demo
from rushlight.cli.demo import chart, memory, progress, table, training, ways


@pytest.fixture
def results() -> list[dict]:
    """Figures of three runs as the processes report them."""
    sizes = {"adam": 171_000_000, "fused": 130_000_000, "budget": 85_500_000}
    return [
        {
            "way": way,
            "name": ways.WAYS[way],
            "peak": peak,
            "arrays": peak - 5_000_000,
            "parameters": 38_000_000,
            "gradients": 0 if way == "fused" else 38_000_000,
            "state": 76_000_000,
            "seconds_per_step": 0.05,
            "accuracy": 0.97,
            "losses": [2.0, 1.0, 0.5],
            "steps": 44,
            "series": [(i / 21 - 1, peak // 2 + (i % 7) * 1_000_000) for i in range(1000)],
        }
        for way, peak in sizes.items()
    ]


def test_table_and_verdict(results: list[dict]) -> None:
    text = table.render(results)
    assert "Adam in backward peaks 41.0 MB lower (24 %)" in text and "agree to 0.0e+00" in text
    assert "Adam, budget of 100 MB: 85.5 MB lower (50 %)" in text
    assert "Counted, its arrays peak 41,000,000 bytes lower: gradients are 38,000,000 bytes." in text
    rows = text.splitlines()[1:6]
    assert len({len(row) for row in rows}) == 1


def test_chart_is_svg_with_a_line_for_each_run(results: list[dict]) -> None:
    root = xml.etree.ElementTree.fromstring(chart.draw(results))
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == space + "svg"
    lines = root.findall(space + "polyline")
    assert len(lines) == 3
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert all(0 <= x <= chart.WIDTH and 0 <= y <= chart.HEIGHT for x, y in points)
        assert points == sorted(points, key=lambda point: point[0])


def test_agreement(results: list[dict]) -> None:
    results[1]["losses"][2] += 0.25
    assert demo.agreement(results) == 0.25


def test_split_is_of_whole_data() -> None:
    (images, labels), (held, held_labels) = training.split(0)
    assert images.shape == (1437, 3, 8, 8) and held.shape == (360, 3, 8, 8)
    assert len(labels) == 1437 and len(held_labels) == 360
    assert images.dtype == np.float32 and abs(float(images.mean())) < 0.05 and abs(float(images.std()) - 1) < 0.05
    other, _ = training.split(1)
    assert not np.array_equal(labels, other[1])


def test_resident_memory_sees_an_array() -> None:
    with memory.ResidentMemory() as resident, mmap.mmap(-1, 1 << 25) as pages:
        pages.write(b"x" * len(pages))
    assert resident.peak > 0.9 * (1 << 25)
    assert resident.elapsed() > 0 and all(seconds > 0 for seconds, _ in resident.series)


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A part of a pass: the fused run peaks lower by the gradients, the other by its budget; the losses are the same."""
    figures = tmp_path / "figures.json"
    assert demo.main(["--epochs", "1", "--steps", "8", "-o", str(tmp_path / "chart.svg"), "--json", str(figures)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Training one vision transformer") and "Adam in backward" in printed
    assert "three ways, the first 8 steps of a pass each." in printed
    found = json.loads(figures.read_text())
    plain, fused, bound = found["runs"]
    assert plain["steps"] == len(plain["losses"]) == 8
    assert found["largest_loss_difference"] <= 1e-5
    assert plain["gradients"] == plain["parameters"] and fused["gradients"] == 0
    assert plain["state"] == fused["state"] >= 2 * plain["parameters"]
    assert plain["peak"] - fused["peak"] >= 0.95 * plain["gradients"]
    if plain["arrays"] is not None:
        assert plain["arrays"] - fused["arrays"] >= plain["gradients"]
        assert bound["arrays"] <= training.BUDGET
    assert bound["peak"] <= 1.15 * training.BUDGET
    xml.etree.ElementTree.parse(tmp_path / "chart.svg")


@pytest.mark.parametrize("words", [["--steps", "0"], ["--epochs", "-1"], ["--epochs", "many"]])
def test_numbers_of_passes_and_steps_are_positive(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.main(words)
    assert f"argument {words[0]}: expected a number from 1, got {words[1]!r}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["-o", "--json"])
def test_a_file_that_cannot_be_written_is_found_before_the_training(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo.main([option, "/proc/chart.svg"]) == 2
    printed = capsys.readouterr()
    assert not printed.out and "/proc/chart.svg cannot be written: " in printed.err


def test_without_a_terminal_a_line_comes_for_each_tenth_and_after_four_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    with progress.Progress("Adam") as shown:
        for step in range(1, 177):
            now[0] += 0.1 if step < 100 else 3.0  # others use the machine
            shown.step(step, 176, 1.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split() == ["Adam", "0", "%"] and lines[-1].split()[1:3] == ["100", "%"]
    assert 1 + 5 + 38 <= len(lines) <= 1 + 5 + 40  # five tenths, then every second step


def test_ctrl_c_ends_a_training_in_silence(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", "from rushlight_command import main; raise SystemExit(main())", "demo"]
    process = subprocess.Popen(
        program, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while b"loss" not in said:  # the first way has begun
        said += os.read(ours, 1 << 16)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    with contextlib.suppress(OSError):
        while found := os.read(ours, 1 << 16):
            said += found
    os.close(ours)
    assert process.wait(60) == 130
    assert b"rushlight: interrupted" in said and b"Traceback" not in said
