"""The options of optimizers: groups hold what signatures name, and what came later is filled in for old checkpoints."""

import inspect

import pytest

import rushlight as torch
from rushlight.optim.options import LATER
from rushlight.optim.stepper import Stepper

OPTIMIZERS = [
    getattr(torch.optim, name) for name in sorted(dir(torch.optim)) if name not in ("Optimizer", "lr_scheduler")
]
OPTIMIZERS = [kind for kind in OPTIMIZERS if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer)]


def made(kind, **options):
    return kind([torch.nn.Parameter(torch.ones(3, 2))], **options)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_groups_hold_the_options_of_the_signature(kind):
    named = {name for name in inspect.signature(kind).parameters if name not in ("params", "options")}
    if kind.__name__.endswith("8bit"):
        named -= {"amsgrad"}  # taken only to be refused
    assert set(made(kind).param_groups[0]) >= named


@pytest.mark.parametrize("kind", [kind for kind in OPTIMIZERS if issubclass(kind, Stepper)])
def test_groups_of_old_checkpoints_get_what_came_later(kind):
    optimizer = made(kind)
    old = optimizer.state_dict()
    for name in LATER:
        old["param_groups"][0].pop(name, None)
    whole = dict(optimizer.param_groups[0])
    fresh = made(kind)
    fresh.load_state_dict(old)
    assert {**fresh.param_groups[0], "params": None} == {**whole, "params": None}


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.NAdam, torch.optim.Lion])
def test_an_option_out_of_range_is_refused_alike_in_all(kind):
    with pytest.raises(ValueError, match=r"Invalid weight_decay value: -0\.1"):
        made(kind, weight_decay=-0.1)
    with pytest.raises(ValueError, match=r"Invalid beta parameter at index 1: 1\.5"):
        made(kind, betas=(0.9, 1.5))
