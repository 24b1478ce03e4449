"""What a notebook shows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory import synthetic

import rushlight as torch
from rushlight import memory


def test_figures_are_tables() -> None:
    assert "<td" in memory.stats()._repr_html_() and "arrays at the peak" in memory.stats()._repr_html_()
    layer = torch.nn.Linear(10, 10)
    assert "parameter" in memory.live()._repr_html_()
    found = memory.estimate(layer, (3, 10))._repr_html_()
    assert "activations" in found and "440 B" in found


def test_the_report_of_a_budget_is_a_table_of_what_it_prints() -> None:
    with memory.budget(memory.current() + 10_000_000) as budget:
        torch.ones(1000)
    report = budget.report()
    shown, printed = report._repr_html_(), str(report).splitlines()
    assert shown.startswith("<table>") and shown.count("<tr>") == len(printed)
    assert "peak, measured" in shown and printed[1].startswith("peak, measured          ")


def test_a_recording_is_its_report_and_advice_has_its_code() -> None:
    recording = synthetic.training()
    shown = recording._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "Memory report" in shown and "<script" not in shown
    advice = memory.advise(recording)
    assert advice._repr_html_().count("<li>") == len(advice) and "memory.budget(" in advice._repr_html_()
    assert advice[0].title in str(advice) and type(advice) is not list and isinstance(advice, list)
    assert "Nothing" in memory.advise(synthetic.Writer().done())._repr_html_()


def test_a_recording_that_is_too_long_says_so(monkeypatch: Any) -> None:
    monkeypatch.setattr("rushlight.memory.reports.notebook.LARGEST", 10)
    assert "too long to be shown" in synthetic.training()._repr_html_()


def test_a_budget_says_its_limit() -> None:
    assert repr(memory.budget("30 MB")) == "<memory.budget of 30 MB>"


def test_names_are_no_markup() -> None:
    w = synthetic.Writer()
    w.alloc(1000, "activation", "<b>", "<i>", (synthetic.line(1, "<u>", "<s>"),))
    assert not {"<b>", "<i>", "<u>", "<s>"} & set(w.done()._repr_html_().replace(">", "> ").split())


def test_a_cell_is_recorded() -> None:
    class Shell:
        def __init__(self) -> None:
            self.magics: dict[str, Any] = {}
            self.names: dict[str, Any] = {"torch": torch}

        def register_magic_function(self, function: Any, kind: str, name: str) -> None:
            self.magics[kind, name] = function

        def run_cell(self, cell: str) -> None:
            exec(cell, self.names)

    shell = Shell()
    memory.load_ipython_extension(shell)
    magic = shell.magics["line_cell", "memory"]
    for recording in (
        magic("", "x = torch.ones(50_000)"),
        magic("x = torch.ones(50_000)"),
        magic("9999", "x = torch.ones(50_000)"),
    ):
        assert 200_000 in recording.size and not memory.is_recording()
    with pytest.raises(ValueError, match="%%memory takes the number of events to keep, or nothing; got '--help'"):
        magic("--help", "x = 1")
