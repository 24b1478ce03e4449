"""Modes of grad as decorators of classes."""

import pytest

import rushlight as torch


class Noting:
    def __init__(self):
        self.made_with_grad = torch.is_grad_enabled()

    def later(self):
        return torch.is_grad_enabled()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_they_apply_to_its_construction_with_a_warning(mode):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        made = mode()(Noting)
    with torch.set_grad_enabled(mode is not torch.enable_grad):
        found = made()
    assert found.made_with_grad is (mode is torch.enable_grad)
    assert found.later() is True
