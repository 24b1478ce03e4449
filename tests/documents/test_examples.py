"""The scripts in `examples/` run, in small form, and say what they promise; the notebooks are made of them."""

from __future__ import annotations

import gc
import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
# Of each script what makes it small, and what it says then.
SAYS = {
    "before_it_runs.py": ("192", "largest batch within twice that:"),
    "below_a_budget.py": ("192", "the same losses: True"),
    "checkpointing.py": ("32", "stores.recompute()"),
    "custom_function.py": ("300", "gradcheck, softsign: True"),
    "does_not_fit.py": ("96", "and blocks computed again"),
    "forward_and_vmap.py": ("60", "forward and reverse Jacobians agree: True"),
    "four_processes.py": ("64", "four parts"),
    "gpt.py": ("1", "letters, 45 of them"),
    "gradient_penalty.py": ("5", "the largest curvature"),
    "hooks.py": ("3", "6 gradients"),
    "on_disk.py": ("192", "in bfloat16"),
    "optimizer_in_backward.py": ("192", "the same losses: True"),
    "report_in_ci.py": ("64", "a commit that wastes: peak"),
    "somebody_elses_script.py": ("192", "the same output: True"),
    "vit_with_lora.py": ("1", "of adapters in 6 layers"),
    "where_it_goes.py": ("192", "open report.html"),
}
PROCESSES = ("four_processes.py", "somebody_elses_script.py")  # which start others


def figures(text: str, unit: str = "MB") -> list[float]:
    """The numbers before a unit."""
    return [float(found) for found in re.findall(rf"([\d.]+) {unit}", text)]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Runs an example in its small form, in an empty folder; what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(name: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, SAYS[name][0]])
        gc.collect()  # what others left would be freed meanwhile, and taken off what the example needs
        runpy.run_path(str(FOLDER / name), run_name="__main__")
        return capfd.readouterr().out

    return run


def test_every_example_is_short_and_listed() -> None:
    scripts = list(FOLDER.glob("*.py"))
    assert {path.name for path in scripts} == set(SAYS)
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}]({name})" in table for name in SAYS)
    assert [path.name for path in scripts if len(path.read_text(encoding="utf-8").splitlines()) > 80] == []


@pytest.mark.parametrize("name", [name for name in SAYS if name not in PROCESSES])
def test_an_example_says_what_it_promises(name: str, said) -> None:
    text = said(name)
    assert SAYS[name][1] in text
    check = globals().get(f"check_{name[:-3]}")
    if check is not None:
        check(text.splitlines())


def check_on_disk(lines: list[str]) -> None:
    kept = {line[:16].strip(): figures(line)[0] for line in lines}
    assert kept["on disk"] < kept["in memory"] > kept["in bfloat16"]


def check_does_not_fit(lines: list[str]) -> None:
    ways = {line[:34].strip(): figures(line)[0] for line in lines[1:]}
    assert min(ways, key=ways.__getitem__) in ("and blocks computed again", "a budget of half, as it is")
    assert ways["as it is"] > ways["gradients cleared after the step"] > ways["its state in 8 bits"]


def check_custom_function(lines: list[str]) -> None:
    plain, bits = (figures(line)[0] for line in lines[:2])
    assert bits < 0.25 * plain


def check_optimizer_in_backward(lines: list[str]) -> None:
    assert len(lines) == 5 and all(line.endswith("the same losses: True") for line in lines[1:])
    assert figures(lines[1])[1] < 0.85 * figures(lines[1])[0]


def check_report_in_ci(lines: list[str]) -> None:
    assert [line.rpartition(": ")[2] for line in lines if "allowed" in line] == ["passes", "passes", "FAILS"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
@pytest.mark.parametrize("name", PROCESSES)
def test_an_example_of_several_processes(name: str, said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    if name == "four_processes.py":
        with pytest.raises(SystemExit, match="0"):
            said(name)
    else:
        assert SAYS[name][1] in said(name)
