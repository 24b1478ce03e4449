"""The command line itself."""

import subprocess
import sys

import pytest

from rushlight import cli
from rushlight.version import __version__


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["demo", "--help"], ["info", "--help"]])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(command)
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "usage: rushlight" in text and max(map(len, text.splitlines())) <= 120


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


def test_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "rushlight", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rushlight {__version__}\n"
