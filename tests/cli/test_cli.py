"""The command line itself."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import printed

from rushlight import cli
from rushlight.version import __version__


@pytest.mark.parametrize("command", [["--help"], *([command, "--help"] for command in cli.COMMANDS)])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(command)
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "usage: rushlight" in text and max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("command", ["report", "show", "convert", "check"])
def test_help_of_memory_says_what_each_argument_is(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["memory", command, "--help"])
    assert stop.value.code == 0
    usage, about, *sections = capsys.readouterr().out.split("\n\n")
    assert usage.startswith(f"usage: rushlight memory {command}") and about.endswith(".")
    for line in "\n".join(sections).splitlines():
        assert not line.startswith("  ") or len(line.split(None, 1)) == 2, f"{line!r} says nothing"


def test_a_report_of_nothing_asks_for_a_file_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["memory", "report"])
    assert stop.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "what shall be reported? Give a snapshot, a script" in last


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"rushlight {__version__}\n"


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    text = capsys.readouterr().out
    assert f"rushlight     {__version__}" in text and "numpy" in text


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "examples:" in capsys.readouterr().out


def test_wrong_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["dema"])
    assert stop.value.code == 2
    assert "dema" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = f"{sys.executable} -m rushlight doctor --no-measure --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stderr == "" and done.returncode == 141


def test_ctrl_c_ends_a_command_in_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("rushlight.cli.info.main", stopped)
    assert cli.main(["info"]) == 130
    assert capsys.readouterr().err == "rushlight: interrupted\n"


def test_completion_knows_every_command_and_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    for line, expected in (("rushlight est", {"estimate"}), ("rushlight memory report --ma", {"--max-entries"}),
                           ("rushlight run --me", {"--memory-budget"}), ("rushlight memory co", {"convert"})):  # fmt: skip
        words = " ".join(line.split())
        program = f'{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(line.split()) - 1}; _rushlight; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, cwd=tmp_path)
        assert set(done.stdout.split()) == expected and not done.stderr
    for shell, part in (("zsh", "bashcompinit"), ("fish", "complete -c rushlight")):
        assert cli.main(["completion", shell]) == 0
        assert part in capsys.readouterr().out


def test_runs_as_a_module() -> None:
    assert printed("-m", "rushlight", "--version") == f"rushlight {__version__}\n"
