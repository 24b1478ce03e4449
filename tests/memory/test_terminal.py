"""The report as text, and the command `rushlight memory`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.memory import synthetic

from rushlight import memory
from rushlight.cli import main
from rushlight.memory.counting import units

CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_the_text_fits(width: int) -> None:
    text = memory.text_report(synthetic.training(), width=width, color=False)
    assert "\x1b" not in text
    chart = text.split("\n\n")[1]
    assert max(map(len, chart.splitlines())) <= width
    assert (
        "peak 1.58 GB" in text and "optimizer state" in text and "train.py:47" in text and "in backward" in text.lower()
    )


def test_colour_changes_nothing_but_colour() -> None:
    recording = synthetic.training()
    plain, coloured = (memory.text_report(recording, width=90, color=on) for on in (False, True))
    assert "\x1b[38;2;0;158;115" in coloured
    without = CODES.sub("", coloured)
    assert [line for line in without.splitlines() if "█" not in line and "▁" not in line][:4] == [
        line for line in plain.splitlines() if "█" not in line and "▁" not in line
    ][:4]


def test_the_chart_shows_the_peak() -> None:
    chart = memory.text_report(synthetic.irregular(5000), width=80, color=False).split("\n\n")[1].splitlines()
    assert "█" in chart[0] or "▇" in chart[0]
    assert chart[0].split()[0] == units.size(synthetic.irregular(5000).peak()[0]).split()[0]


def test_comparison() -> None:
    text = memory.text_report(synthetic.training(), 100, False, synthetic.training(fused=True), "plain", "fused")
    assert re.search(r"all +1.58 GB +1.49 GB +-92.0 MB", text)


def test_an_empty_recording_is_a_sentence() -> None:
    text = memory.text_report(synthetic.Writer().done(), width=80, title="train.py")
    assert text.startswith("train.py: nothing\n")
    assert "Nothing was allocated while this was recorded" in text and "█" not in text and "1 events" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.fixture
def snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    memory.save(synthetic.training(), "plain.pickle")
    memory.save(synthetic.training(fused=True), "fused.pickle")
    return tmp_path


@pytest.mark.parametrize("order", ["before", "after"])
def test_report_on_a_file(snapshots: Path, capsys: pytest.CaptureFixture[str], order: str) -> None:
    options = ["-o", "page.html", "--compare", "fused.pickle"]
    words = [*options, "plain.pickle"] if order == "before" else ["plain.pickle", *options]
    assert main(["memory", "report", *words]) == 0
    assert "page.html" in capsys.readouterr().err
    text = (snapshots / "page.html").read_text(encoding="utf-8")
    assert "plain.pickle" in text and "fused.pickle" in text
    assert main(["memory", "report", *words, "--compare", "plain.pickle"]) == 0
    text = (snapshots / "page.html").read_text(encoding="utf-8")
    assert text.count("<th class=n>") == 6 and "plain.pickle (A)" in text and "plain.pickle (C)" in text


def test_show_and_text(snapshots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "show", "plain.pickle", "--width", "90"]) == 0
    shown = capsys.readouterr().out
    assert "plain.pickle: peak 1.58 GB" in shown and "\x1b" not in shown
    assert main(["memory", "report", "--text", "plain.pickle", "--width", "90"]) == 0
    assert capsys.readouterr().out == shown


def test_a_terminal_of_ascii_gets_ascii(snapshots: Path) -> None:
    command = [sys.executable, "-m", "rushlight", "memory", "show", "plain.pickle"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    assert done.stdout.decode("ascii").splitlines()[5].count("#") > 3 and not done.stderr


def test_colours_are_for_terminals_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    for term, coloured in (("xterm", True), ("dumb", False)):
        monkeypatch.setenv("TERM", term)
        assert ("\x1b" in memory.text_report(synthetic.training(), file=Terminal())) is coloured


def test_a_damaged_file_is_said_to_be_damaged(snapshots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snapshots / "bad.pickle").write_bytes(b"\x80\x04h\x07.")
    assert main(["memory", "report", "bad.pickle"]) == 1
    assert "it is damaged at byte 2: a value is asked for that is not there" in capsys.readouterr().err


def test_check_and_convert(snapshots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "check", "plain.pickle"]) == 0
    assert "peak 1.58 GB" in capsys.readouterr().out
    assert main(["memory", "convert", "plain.pickle", "again.pickle"]) == 0
    assert memory.load_snapshot("again.pickle") == memory.load_snapshot("plain.pickle")
    snapshot = memory.load_snapshot("plain.pickle")
    snapshot["segments"].clear()
    memory.save(snapshot, "bad.pickle")
    assert main(["memory", "check", "bad.pickle"]) == 1
    assert "outside every segment" in capsys.readouterr().out


def test_errors(snapshots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snapshots / "bad.pickle").write_bytes(b"\x80\x04\x8c\x02os\x8c\x06system\x93.")
    assert main(["memory", "report", "bad.pickle"]) == 1
    assert "STACK_GLOBAL" in capsys.readouterr().err
    assert main(["memory", "show", "nowhere.pickle"]) == 1
    assert "nowhere.pickle: No such file" in capsys.readouterr().err
    assert main(["memory", "report", "nowhere.py"]) == 2
    assert "no such script" in capsys.readouterr().err
    assert main(["memory"]) == 2


SCRIPT = """
import sys
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(int(sys.argv[2])):
    optimizer.zero_grad()
    model(torch.ones(32, 64)).sum().backward()
    optimizer.step()
sys.exit(3)
"""


def test_a_script_is_run_and_recorded(snapshots: Path) -> None:
    (snapshots / "train.py").write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "rushlight",
        "memory",
        "report",
        "-o",
        "train.html",
        "--save",
        "train.pickle",
        "train.py",
    ]
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [*command, "--steps", "3"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 3, done.stderr  # the script's own
    assert (
        "Let the optimizer" in (snapshots / "train.html").read_text()
        or "optimizer" in (snapshots / "train.html").read_text()
    )
    recording = memory.load("train.pickle")
    memory.validate(memory.load_snapshot("train.pickle"))
    lines = {frame.line for stack in recording.stacks for frame in stack if frame.filename.endswith("train.py")}
    assert {4, 8, 9} <= lines


def test_several_peaks_stand_side_by_side() -> None:
    every = [synthetic.training(fused=k == 2) for k in range(3)]
    rows = memory.text_report(every, width=100, color=False).splitlines()
    first = rows.index(next(row for row in rows if row.startswith("At the peaks")))
    assert rows[first].split()[3:] == ["rank", "0", "rank", "1", "rank", "2"]
    found = rows[first + 1].split()[1:]
    assert found[:2] == found[2:4] != found[4:6] and len(found) == 6
