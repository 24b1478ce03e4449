"""The replay: it says the same twice, and sees whatever a change of the house might change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tools import replay
from tools.replaying import cases, modes

import rushlight as torch


def lines(call: str, dtype: str = "float64") -> dict[str, Any]:
    """What a call gives in every mode, through JSON and back."""
    case = cases.called(call, dtype)
    return {mode: json.loads(json.dumps(modes.replayed(case, mode))) for mode in modes.MODES}


@pytest.mark.parametrize(
    "call", ["F.softmax(x, 1)", "x.sum(1)", "T.add(x, v)", "x[:, 1:]", "F.layer_norm(x, (4,), v, w)"]
)
def test_twice_the_same(call: str) -> None:
    assert lines(call) == lines(call)


def test_every_mode_finds_something() -> None:
    found = lines("F.softmax(x, 1)")
    assert all("found" in line for line in found.values()), found
    assert ["SoftmaxBackward0", [[1, 0]]] in [node[:2] for node in found["grad"]["found"][1][1:]]
    assert "one of the variables needed for gradient" in json.dumps(found["changed"]["found"])
    assert "aten::softmax" in json.dumps(found["recording"]["found"])


def test_another_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lines("x.cumsum(1)")
    true = torch.Tensor.cumsum
    monkeypatch.setattr(torch.Tensor, "cumsum", lambda x, dim: true(x, dim).nextafter(torch.tensor(9.0)))
    after = lines("x.cumsum(1)")
    assert {mode for mode in before if before[mode] != after[mode]} >= {"plain", "grad", "no_grad", "vmap", "apart"}


def test_another_gradient_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lines("x.cumsum(1)")
    true = torch.Tensor.cumsum

    def doubled(x: Any, dim: int) -> Any:
        y = true(x, dim)
        if y.requires_grad:
            y.register_hook(lambda g: g * 2)
        return y

    monkeypatch.setattr(torch.Tensor, "cumsum", doubled)
    after = lines("x.cumsum(1)")
    assert {"first order", "second order", "backward"} <= {mode for mode in before if before[mode] != after[mode]}
    assert all(before[mode] == after[mode] for mode in ("plain", "grad", "no_grad", "inference"))


def test_what_is_raised_and_warned_of_is_written_down() -> None:
    line = modes.replayed(cases.called("T.mm(a, a)", "float64"), "plain")
    assert line["raised"][0] == "RuntimeError" and "found" not in line


def test_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    rows = [{"case": "f(x)", "mode": mode, "found": [1]} for mode in ("plain", "grad")]
    a.write_text("\n".join(map(json.dumps, rows)))
    b.write_text("\n".join(map(json.dumps, [rows[0], {**rows[1], "found": [2]}])))
    assert replay.compare(a, a, 5) == 0
    assert replay.compare(a, b, 5) == 1
    assert "f(x) (grad)" in capsys.readouterr().out
