"""The modules of rooms are known by the names that PyTorch's have."""

import importlib
import pickle

import pytest

import rushlight as torch
from rushlight import distributions


@pytest.mark.parametrize("name", ["normal", "categorical", "multivariate_normal", "half_normal", "relaxed_bernoulli"])
def test_a_module_has_pytorchs_name(name: str) -> None:
    module = importlib.import_module(f"rushlight.distributions.{name}")
    assert getattr(distributions, name) is module


def test_classes_say_pytorchs_name_and_can_be_pickled() -> None:
    assert distributions.Normal.__module__ == "rushlight.distributions.normal"
    again = pickle.loads(pickle.dumps(distributions.Normal(torch.tensor(1.0), torch.tensor(2.0))))
    assert type(again) is distributions.Normal and again.scale == 2
