"""``rushlight memory watch``: what is seen while a script runs, what Ctrl-C leaves, and processes that allow to be watched."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rushlight import memory
from rushlight.cli import watch
from rushlight.memory.recordings import recorder
from rushlight.memory.recordings.columns import unpack
from rushlight.memory.watching.attach import REPORT, allow_watch, connect
from rushlight.memory.watching.samples import Sampler
from rushlight.memory.watching.view import Lines, Screen

PROGRAM = [sys.executable, "-c", "from rushlight_command import main; raise SystemExit(main())"]
STEPS = """
    import sys, time
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(200, 300), torch.nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(int(sys.argv[1])):
        model(torch.ones(64, 200)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, flush=True)
        time.sleep(0.05)
"""


def started(folder: Path, *words: str, **more: Any) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(textwrap.dedent(STEPS))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    pipes["preexec_fn"] = lambda: signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # in the background shells have it ignored
    return subprocess.Popen([*PROGRAM, *words], **{**pipes, **more})


def test_a_sample_adds_up() -> None:
    import rushlight as torch

    memory.record_history()
    try:
        model = torch.nn.Sequential(torch.nn.Linear(500, 400), torch.nn.Tanh())
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(100, 500)).sum().backward()
        optimizer.step()
        kept = model(torch.ones(100, 500)).sum()
        assert recorder._active is not None
        sample = Sampler(recorder._active).sample()
    finally:
        memory.record_history(None)
    assert sum(sample["categories"].values()) == sample["now"] <= sample["peak"]
    assert (
        sample["categories"]["optimizer_state"] >= 2 * 4 * 400 * 501
        and sample["categories"]["gradient"] >= 4 * 400 * 501
    )
    assert sample["modules"]["0"] >= 4 * 4 * 400 * 501  # parameters, gradients and state are their module's
    assert any(line.startswith(__file__) for line in sample["lines"])
    assert sample["steps"] == 1 and sample["phase"] == "forward" and kept.requires_grad


def test_a_look_before_anything_is_there_is_no_half_a_sentence() -> None:
    stream = io.StringIO()
    sample = {"seconds": 0.0, "steps": 0, "phase": "", "now": 0, "peak": 96, "categories": {}, "lines": {}}
    Lines("train.py", stream).show(sample)
    assert stream.getvalue() == "watch 0:00: 0 B now, 96 B at the peak\n"


def test_without_a_terminal_there_is_a_line_for_each_look(tmp_path: Path) -> None:
    process = started(tmp_path, "memory", "watch", "--every", "0.2", "train.py", "8", "-o", "theirs")
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert out == "".join(f"step {i}\n" for i in range(8))  # the output is the script's alone
    looks = [line for line in errors.splitlines() if line.startswith("watch 0:")]
    assert "at the peak" in looks[-1] and "optimizer state" in looks[-1] and "step 8" in looks[-1]
    assert "report.html: " in errors and (tmp_path / "report.html").stat().st_size > 10_000


def test_a_picture_has_phases_modules_lines_and_the_curve() -> None:
    rich = pytest.importorskip("rich.console")
    screen = Screen("train.py", io.StringIO())
    screen.console = rich.Console(file=io.StringIO(), width=110)
    for now in (10_000_000, 25_000_000, 40_000_000):
        screen.curve.append((now, "activation"))
    screen.console.print(screen.picture({**SEEN, "now": 40_000_000}))
    text = screen.console.file.getvalue()
    assert "0:12, step 7, backward: 40.0 MB now, 50.0 MB at the peak" in text and "Ctrl-C ends it with a report" in text
    assert "■ activation 30.0 MB   ■ parameter 10.0 MB" in text and "2.5 s  backward" in text
    assert "layers.0" in text and "train.py:8" in text and max(map(len, text.splitlines())) == 110


SEEN = {
    "seconds": 12.0, "peak": 50_000_000, "process": 90_000_000, "blocks": 12, "steps": 7, "phase": "backward",
    "phases": {"": [1.0, 5], "backward": [2.5, 50_000_000]}, "categories": {"activation": 30_000_000, "parameter": 10_000_000},
    "modules": {"layers.0": 20_000_000}, "lines": {"/home/me/train.py:8": 30_000_000},
}  # fmt: skip


def test_a_process_that_allows_it_sends_samples_and_its_recording() -> None:
    allow_watch(every=0.05)
    with connect(os.getpid()) as there, there.makefile("rb") as lines:
        first = json.loads(lines.readline())
        kept = np.ones(500_000, np.uint8)
        seen = next(found for line in lines if (found := json.loads(line))["now"] >= first["now"] + kept.nbytes)
        assert any(name.startswith(__file__) for name in seen["lines"]) and memory.is_recording()
        there.sendall(REPORT)
        recording = next(unpack(found["recording"]) for line in lines if "recording" in (found := json.loads(line)))
    assert kept.nbytes in recording.size and not memory.is_recording()


@pytest.mark.slow
def test_on_a_terminal_there_is_a_picture_and_what_the_script_prints_goes_by(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    process = started(
        tmp_path, "memory", "watch", "--every", "0.1", "train.py", "5",
        stdout=theirs, stderr=theirs, stdin=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "110", "LINES": "40"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # the terminal's other end is closed
            break
        seen += data
    os.close(ours)
    text = seen.decode("utf-8", "replace")
    assert process.wait() == 0, text
    assert all(f"step {i}" in text for i in range(5)) and "report.html: " in text
    assert "■" in text and "phases" in text and "modules" in text and "Ctrl-C ends it with a report" in text


def test_ctrl_c_ends_the_script_with_its_report(tmp_path: Path) -> None:
    process = started(tmp_path, "memory", "watch", "--every", "0.2", "train.py", "1000")
    assert process.stdout is not None and process.stdout.readline() == "step 0\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors and 'train.py", line ' in errors
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_process_that_allows_it_is_watched_and_goes_on(tmp_path: Path) -> None:
    process = started(tmp_path, "run", "--watchable", "train.py", "1000")
    try:
        assert process.stdout is not None and process.stdout.readline() == "step 0\n"
        watcher = started(tmp_path, "memory", "watch", "--attach", str(process.pid), "--save", "seen.pickle")
        assert watcher.stderr is not None
        while "step" not in watcher.stderr.readline():  # a step was seen
            pass
        watcher.send_signal(signal.SIGINT)
        _, errors = watcher.communicate(timeout=60)
        assert watcher.returncode == 130, errors
        assert (tmp_path / "report.html").stat().st_size > 10_000
        assert memory.load(tmp_path / "seen.pickle").peak()[0] > 4 * 3 * 300 * 201
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_a_process_that_does_not_allow_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert watch.main(["--attach", "1"]) == 1
    errors = capsys.readouterr().err
    assert "process 1 cannot be watched" in errors and "allow_watch()" in errors


def test_os_exit_leaves_a_report(tmp_path: Path) -> None:
    (tmp_path / "quits.py").write_text(
        "import os, torch\nx = torch.ones(70_000)\nif os.fork() == 0: os._exit(0)\nos.wait()\nos._exit(3)\n"
    )
    process = started(tmp_path, "memory", "report", "quits.py")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3 and errors.count("report.html: ") == 1, errors
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "watch"])
def test_ctrl_c_at_any_moment_leaves_a_report_or_a_line(tmp_path: Path, command: str) -> None:
    def run(wait: float | None = None) -> tuple[int, str]:
        """Exit status and standard error, of Ctrl-C after so many seconds."""
        with started(tmp_path, "memory", command, "train.py", "40") as process:
            if wait is not None:
                time.sleep(wait)
                process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
            return process.returncode, errors

    whole = time.monotonic()
    assert run()[0] == 0
    whole = time.monotonic() - whole
    found, chance, page = [], random.Random(0), tmp_path / "report.html"
    for _ in range(50):
        page.unlink(missing_ok=True)
        status, errors = run(0.1 + chance.random() * (whole - 0.1))  # Python itself has begun by then
        reported = page.exists() and page.read_text(encoding="utf-8").rstrip().endswith("</html>")
        said = [line for line in errors.splitlines() if "interrupted" in line]
        assert reported or len(errors.splitlines()) == len(said) == 1, errors
        assert status == 130 or (status == 0 and reported and "report.html: " in errors), (
            errors
        )  # 0: it was done already
        found.append("ended" if status == 0 else "report" if reported else "line")
    print({kind: found.count(kind) for kind in found})
    assert found.count("report") > 10
