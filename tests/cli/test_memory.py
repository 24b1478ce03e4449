"""``rushlight memory report`` on scripts: what is theirs, what ends them, and that nothing recorded is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from rushlight import memory

COMMAND = [sys.executable, "-m", "rushlight", "memory", "report"]
STEPS = """
    import os, sys, signal, time
    import torch
    model = torch.nn.Linear(300, 300)
    for step in range(3):
        model(torch.ones(8, 300)).sum().backward()
    print(sys.argv[1:], flush=True)
"""


@pytest.fixture
def report(tmp_path: Path) -> Any:
    """Runs ``rushlight memory report`` in an empty folder; `script` is written to train.py first."""

    def start(*words: str, script: str = STEPS, status: int = 0) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(textwrap.dedent(script))
        done = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stderr
        return done

    return start


def test_everything_behind_the_script_is_the_scripts(report: Any, tmp_path: Path) -> None:
    words = ["--epochs", "1", "-o", "model.pt", "--output", "x", "--", "--text", "--save=y"]
    done = report("-o", "page.html", "train.py", *words)
    assert done.stdout == f"{words}\n"  # and the page's name is not the script's output
    assert done.stderr.startswith("peak ") and "most of it gradient" in done.stderr
    assert "page.html: " in done.stderr and "train.py" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sorted(os.listdir(tmp_path)) == ["page.html", "train.py"]


def test_a_script_that_is_named_as_one_names_it_shows_its_lines(report: Any, tmp_path: Path) -> None:
    report("train.py")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "model = torch.nn.Linear(300, 300)" in page
    text = report("--text", "train.py").stdout
    assert " train.py:6\n" in text and str(tmp_path) not in text


def test_a_script_that_makes_nothing_is_a_sentence(report: Any, tmp_path: Path) -> None:
    done = report("train.py", script="print('nothing')")
    assert done.stdout == "nothing\n" and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[0] == "nothing was allocated while the script ran: no tensor and no array"
    assert "Nothing was allocated while this was recorded" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_what_a_signal_ends_is_reported(report: Any, tmp_path: Path, name: str, status: int) -> None:
    script = STEPS + f"    os.kill(os.getpid(), signal.{name})\n    time.sleep(60)\n"
    done = report("--save", "train.pickle", "train.py", script=script, status=status)
    assert "interrupted" in done.stderr and "report.html: " in done.stderr
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert memory.load(tmp_path / "train.pickle").peak()[0] >= 4 * 300 * 300
    assert "record.py" not in done.stderr and "run.py" not in done.stderr


def test_a_script_may_handle_its_own_signals(report: Any) -> None:
    script = STEPS + (
        "    signal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    sys.exit(3)\n"
    )
    assert report("train.py", script=script, status=3).stdout.endswith("mine\n")


@pytest.mark.parametrize("option", ["-o", "--save"])
def test_a_file_that_cannot_be_written_is_found_before_the_run(report: Any, tmp_path: Path, option: str) -> None:
    (tmp_path / "folder").mkdir()
    for path in ("nowhere/page.html", "folder", "/proc/page.html"):
        done = report(option, path, "train.py", status=2)
        assert not done.stdout and f"{path} cannot be written: " in done.stderr and "nothing was run" in done.stderr
    (tmp_path / "old.html").write_text("kept until it is replaced")
    report(option, "old.html", "absent.py", status=2)
    assert (tmp_path / "old.html").read_text() == "kept until it is replaced"


def test_a_page_that_cannot_be_written_after_all_is_written_elsewhere(report: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    done = report("-o", "out/page.html", "train.py", script=STEPS + "    os.rmdir('out')\n")
    path = Path(done.stderr.splitlines()[-1].partition(": ")[0])
    assert "writing " in done.stderr and path.stat().st_size > 10_000
    path.unlink()


def test_modules_code_and_budgets(report: Any, tmp_path: Path) -> None:
    (tmp_path / "package.py").write_text("import sys, torch; x = torch.ones(70_000); print(sys.argv[1:])\n")
    assert report("--text", "-m", "package", "-o", "theirs").stdout.startswith("['-o', 'theirs']\n")
    done = report("--text", "-c", "import torch; x = torch.ones(70_000)")
    assert done.stdout.startswith("a command: peak 28")
    done = report("--memory-budget", "64MiB", "--spill", ".", "--text", "train.py")
    assert "budget                  64 MiB\n" in done.stderr  # as it was given
    assert "peak, measured" in done.stderr and "train.py: peak" in done.stdout
    assert "--spill expects a folder" in report("--spill", "nowhere", "train.py", status=2).stderr
    memory.save(memory.Recording(*[[] for _ in range(9)]), tmp_path / "empty.pickle")
    assert "are for scripts that are run" in report("empty.pickle", "--weights", "random", status=2).stderr


def test_what_a_script_says_at_its_end_is_said(report: Any) -> None:
    assert "no data here" in report("train.py", script="raise SystemExit('no data here')", status=1).stderr
    failed = report("train.py", script=STEPS + "    raise ValueError('no')\n", status=1).stderr
    assert "ValueError: no" in failed and "report.html: " in failed


def test_ctrl_c_shows_the_scripts_lines_only(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    command = [sys.executable, "-m", "rushlight", "run", "--memory-budget", "64MiB", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert done.returncode == 128 + signal.SIGINT and "KeyboardInterrupt" in lines
    assert "peak, measured" in done.stderr
    assert [line for line in lines if "File " in line] == [f'  File "{tmp_path}/train.py", line 2, in <module>']


def test_a_process_that_the_script_forks_reports_nothing(tmp_path: Path) -> None:
    script = """
        import os, torch
        x = torch.ones(1000)
        child = os.fork()
        if not child:
            y = torch.ones(100_000)
            raise SystemExit(3)
        assert os.waitpid(child, 0)[1] >> 8 == 3
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(script))
    for words, said in ((["memory", "report"], "report.html: "), (["run", "--memory-budget", "1GB"], "peak, measured")):
        command = [*COMMAND[:3], *words, "train.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stderr.count(said) == 1 and "404 kB" not in done.stderr, done.stderr


def test_without_standard_output_nothing_is_printed(report: Any, tmp_path: Path) -> None:
    report("train.py", "--text")
    command = " ".join([*COMMAND, "--text", "train.py", ">&-"])
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_standard_output_is_a_line(report: Any, tmp_path: Path) -> None:
    report("--save", "s.pickle", "train.py")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "--text", "s.pickle"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1 and done.stderr == "rushlight memory: standard output: No space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_told_by_the_files_name(report: Any, tmp_path: Path) -> None:
    report("--save", "s.pickle", "train.py")
    words = [*COMMAND[:-1], "convert", "s.pickle", "/dev/full"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr == "rushlight memory: /dev/full: No space left on device\n"


def test_a_script_in_the_place_of_a_snapshot_is_told_of(report: Any, tmp_path: Path) -> None:
    report("train.py")
    (tmp_path / "train").write_bytes((tmp_path / "train.py").read_bytes())
    done = subprocess.run([*COMMAND, "train"], cwd=tmp_path, capture_output=True, text=True)
    assert (
        done.returncode == 1
        and "it looks like text: what `rushlight memory report` is to run has a name in .py" in done.stderr
    )


def test_a_script_that_is_to_be_shown_is_told_of(report: Any, tmp_path: Path) -> None:
    report("train.py")
    done = subprocess.run([*COMMAND[:-1], "show", "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "it looks like a script: `rushlight memory report train.py` runs it" in done.stderr


def test_lines_that_calls_only_pass_through_are_nobodys(report: Any) -> None:
    script = """
        import copy, functools, torch
        average = copy.deepcopy(torch.nn.Linear(99, 99))
        class Data:
            @functools.cached_property
            def numbers(self):
                return torch.ones(1000)
        Data().numbers
        torch.randint(0, 9, (1000,))
    """
    told = report("--text", "train.py", script=script).stdout
    assert "functools.py" not in told and "copy.py" not in told
