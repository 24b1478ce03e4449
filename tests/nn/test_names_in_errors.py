"""Errors about arguments name the class that was asked for, not one that nobody has heard of."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import rushlight as torch


@pytest.mark.parametrize(
    "kind",
    [torch.nn.Conv2d, torch.nn.BatchNorm1d, torch.nn.MaxPool2d, torch.nn.ReflectionPad1d, torch.optim.lr_scheduler.LambdaLR, torch.distributions.Normal],
)  # fmt: skip
def test_errors_about_arguments_name_the_class(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) missing \d required positional argument"):
        kind()
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'wrong'"):
        kind(wrong=1)
    assert "self" in inspect.signature(kind.__init__).parameters


def test_layers_are_what_they_were() -> None:
    layer = torch.nn.Conv2d(3, 4, 3, bias=False)
    assert repr(pickle.loads(pickle.dumps(layer))) == repr(layer) and layer.bias is None
    assert torch.distributions.Normal(0.0, 1.0).sample().shape == ()
