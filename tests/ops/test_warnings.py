"""Warnings name the line of the user that caused them, however deep in the package they arise."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

X = torch.ones(3, 4)


def hooked() -> Any:
    """The result of a module with a full backward hook and no input that requires grad."""
    module = nn.Linear(4, 4)
    module.register_full_backward_hook(lambda *_: None)
    return module(X).sum()


RESULT = hooked()
CALLS: dict[str, Callable[[], Any]] = {
    "softmax": lambda: F.softmax(X),
    "log_softmax": lambda: F.log_softmax(X),
    "softmin": lambda: F.softmin(X),
    "Softmax": lambda: nn.Softmax()(X),
    "std": lambda: torch.ones(1).std(),
    "var": lambda: torch.var(torch.ones(1), axis=0),
    "cov": lambda: torch.cov(torch.ones(1)),
    "hook": lambda: RESULT.backward(),
    "out": lambda: torch.add(X, X, out=torch.ones(2)),
    "out of a method": lambda: torch.sum(X, 0, out=torch.ones(2)),
    "several outs": lambda: torch.max(X, 0, out=(torch.ones(2), torch.ones(2, dtype=torch.int64))),
    "read-only": lambda: torch.as_tensor(np.frombuffer(b"12345678", np.float32)),
    "mse_loss": lambda: F.mse_loss(X, torch.ones(4)),
    "MSELoss": lambda: nn.MSELoss()(X, torch.ones(4)),
    "KLDivLoss": lambda: nn.KLDivLoss()(X, X),
    "Dropout2d": lambda: nn.Dropout2d()(X),
    "bytes as an index": lambda: X[torch.ones(3, dtype=torch.uint8)],
    "Linear": lambda: nn.Linear(0, 3),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_warnings_name_the_line_of_the_user(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        CALLS[name]()
    said = [w for w in caught if w.category is UserWarning]
    assert said
    line = inspect.getsourcelines(CALLS[name])[1]
    assert {(w.filename, w.lineno) for w in said} == {(__file__, line)}


def test_a_warning_is_said_once_for_a_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)
        for _ in range(3):
            F.softmax(X)
    assert len(caught) == 1


def test_code_that_was_given_as_text_is_warned_too() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom") as caught:
        eval("x.std()", {"x": torch.ones(1)})
    assert caught[0].filename == "<string>"
