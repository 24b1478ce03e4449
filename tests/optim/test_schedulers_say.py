"""What schedulers say of steps in the wrong order, and of epochs."""

import pytest

import rushlight as torch
from rushlight.optim import lr_scheduler


def scheduler():
    return lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1), 1)


def test_a_step_before_the_optimizers_names_the_page_to_read():
    with pytest.warns(UserWarning, match="before `optimizer.step") as found:
        scheduler().step()
    assert str(found[0].message).endswith("#how-to-adjust-learning-rate")


def test_the_warning_of_epochs_can_be_compared_with():
    made = scheduler()
    made.optimizer.step()
    with pytest.warns(UserWarning) as found:
        made.step(3)
    assert [str(w.message) for w in found] == [lr_scheduler.EPOCH_DEPRECATION_WARNING]
