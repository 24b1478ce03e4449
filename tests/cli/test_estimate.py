"""``rushlight estimate``: models by name, file or module, and figures that are those of `memory.estimate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rushlight import cli, memory, models, optim
from rushlight.basics import devices
from rushlight.compat import imports

NETS = """
import torch

def make(width=16):
    return torch.nn.Sequential(torch.nn.Embedding(50, width), torch.nn.Linear(width, 3))

if __name__ == "__main__":
    raise SystemExit("the script itself must not run")
"""


@pytest.fixture(autouse=True)
def _torch_is_not_resolved_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(devices, "instead_of_cuda", devices.instead_of_cuda)
    aside = {name: sys.modules.pop(name) for name in list(sys.modules) if imports.real_name(name)}
    yield
    imports.uninstall()
    sys.modules.update(aside)  # PyTorch, which other tests compare with, cannot be imported twice


def figures(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, object]:
    assert cli.main(["estimate", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_model_of_the_package(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = figures(capsys, "resnet18", "4x3x64x64", "--optimizer", "sgd")
    expected = memory.estimate(models.resnet18, (4, 3, 64, 64), optim.SGD)
    assert (found["peak"], found["parameters"]) == (expected.peak, expected.parameters)
    assert found["optimizer_state"] == 0 and figures(capsys, "resnet18", "4x3x64x64", "--inference")["gradients"] == 0
    page = tmp_path / "page.html"
    assert cli.main(["estimate", "resnet18", "4,3,64,64", "-o", str(page)]) == 0
    printed = capsys.readouterr()
    assert "optimizer state" in printed.out and str(page) in printed.err and page.stat().st_size > 10_000


def test_a_model_in_a_file_or_module(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nets_of_mine.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    by_file = figures(capsys, "nets_of_mine.py:make", "8x5:int64")
    assert by_file["parameters"] == 4 * (50 * 16 + 16 * 3 + 3)
    assert figures(capsys, "nets_of_mine:make", "8x5:int64") == by_file
    assert figures(capsys, "nets_of_mine:make(32)", "8x5:int64")["parameters"] == 4 * (50 * 32 + 32 * 3 + 3)


def test_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "resnet18", "1x3x64x64", "--limit", "400MB")
    assert found["limit"] == 400_000_000 and int(str(found["largest_batch"])) > 10
    assert figures(capsys, "resnet18", "1x3x64x64", "--limit", "1MB", status=1)["largest_batch"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no_such_model", "1x3"], "rushlight.models has no 'no_such_model'; a model of yours is FILE.py:NAME"),
        (["resnet5O", "1x3x32x32"], "rushlight.models has no 'resnet5O', but resnet50"),
        (["nowhere.py:make", "1x3"], "there is no file nowhere.py"),
        (["resnet18", "1x3x32x32", "-o", "/proc/page.html"], "/proc/page.html cannot be written: "),
        (["resnet18", "1x3xmany"], "expected a SHAPE"),
        (["resnet18", "1x3x32x32:int99"], "expected a SHAPE"),
        (["resnet18", "1x3x32x32", "--optimizer", "magic"], "--optimizer expects"),
        (["resnet18", "1x4x32x32"], "channels"),
    ],
)
def test_errors_are_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["estimate", *words]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and "Traceback" not in printed.err and not printed.out


def test_a_file_that_reads_options_finds_none_of_ours(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import argparse, torch\nargparse.ArgumentParser().parse_args()\nmodel = torch.nn.Linear(3, 4)\n"
    (tmp_path / "train.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rushlight", "estimate", "train.py:model", "2x3"])
    assert figures(capsys, "train.py:model", "2x3")["parameters"] == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = {}\nx['k']\n", "line 2 of train.py raised KeyError: 'k'"),
        ("raise ValueError('boom')\n", "line 1 of train.py raised ValueError: boom"),
        ("import sys\n\nsys.exit('no data')\n", "line 3 of train.py raised SystemExit: no data"),
    ],
)
def test_of_a_file_that_raises_the_line_is_said(
    text: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["estimate", "train.py:model", "2x3"]) == 2
    assert capsys.readouterr().err == f"rushlight estimate: train.py:model: {said}\n"
