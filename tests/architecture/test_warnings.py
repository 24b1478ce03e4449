"""Warnings are of the user's line, however many calls of this package lie between."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.architecture.syntax import dotted, nodes

import rushlight as torch

PACKAGE = Path(torch.__file__).parent


def test_every_warning_goes_through_the_function_that_finds_the_users_line() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "caller.py"
        for node in nodes(path)
        if isinstance(node, ast.Call) and dotted(node.func) in ("warnings.warn", "warnings.warn_explicit")
    ]
    assert not found, "rushlight.basics.caller.warn says whose line it is"


def test_it_is_the_users_line_through_wrappers_and_hooks() -> None:
    model = torch.nn.Sequential(torch.nn.Softmax())
    with pytest.warns(UserWarning) as found:
        torch.tensor(torch.ones(1))
        torch.optim.lr_scheduler.StepLR(torch.optim.SGD(torch.nn.Linear(1, 1).parameters()), 1).step()
        torch.ones(2, requires_grad=True).exp().grad
        torch.meshgrid(torch.ones(1), torch.ones(2))
        torch.nn.functional.mse_loss(torch.ones(2), torch.ones(3, 2))
    assert len(found) >= 4 and {warning.filename for warning in found} == {__file__}
    assert model is not None
