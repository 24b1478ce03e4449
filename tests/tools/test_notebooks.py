"""The notebooks of the examples are in step with the scripts, executed, small and of no machine in particular."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tools import notebooks

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def outputs(name: str) -> list[Any]:
    cells = json.loads((ROOT / "examples" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_is_its_script_and_was_executed(name: str) -> None:
    assert notebooks.in_step(name), f"run: python tools/notebooks.py {name}"
    found = outputs(name)
    assert found and all(output["output_type"] != "error" for output in found)
    text = notebooks.path_of(name).read_text(encoding="utf-8")
    assert len(text) < notebooks.LARGEST and str(ROOT) not in text and "site-packages" not in text


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - set(notebooks.STARTED)))
def test_cells_hold_the_whole_script_in_its_order(name: str) -> None:
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    cells = notebooks.cells(name)
    code = [text for kind, text in cells if kind == "code"]
    code = code[
        1 : len(code) - len(notebooks.SHOWN.get(name, ()))
    ]  # without what it sets, and what it shows at its end
    assert "\n".join(code).split() == source.split('"""', 2)[2].split()
    for text in code:
        compile(text, name, "exec")


@pytest.mark.parametrize("name", notebooks.STARTED)
def test_what_is_started_is_written_to_a_file_first(name: str) -> None:
    _, (_, written), (_, start) = notebooks.cells(name)
    assert written.splitlines()[0] == f"%%writefile {name}.py" and start.endswith(f" {name}.py")
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert written.split("\n", 1)[1] == source.rstrip()
    assert "four parts" in str(outputs(name))


def test_all_have_a_notebook() -> None:
    assert sorted(path.stem for path in notebooks.NOTEBOOKS.glob("*.ipynb")) == EXAMPLES


def test_a_changed_script_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = EXAMPLES[0]
    changed = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8") + "print()\n"
    (tmp_path / f"{name}.py").write_text(changed)
    monkeypatch.setattr(notebooks, "EXAMPLES", tmp_path)
    assert not notebooks.in_step(name)
    monkeypatch.setattr(sys, "argv", ["notebooks.py", "--check"])
    assert notebooks.main() == 1


def test_what_is_printed_in_pieces_is_one_output() -> None:
    class Output(dict):  # type: ignore[type-arg]
        __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__  # type: ignore[assignment]

    pieces = [Output(output_type="stream", name=name, text=name) for name in ("stdout", "stdout", "stderr")]
    assert [output.text for output in notebooks.joined(pieces)] == ["stdoutstdout", "stderr"]
