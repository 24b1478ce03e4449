"""A step for whose state memory does not suffice: the optimizer goes on where there is enough."""

import pytest

import rushlight as torch
from rushlight import memory

KINDS = {
    "Adam": lambda p: torch.optim.Adam(p, amsgrad=True),
    "AdamW": torch.optim.AdamW,
    "NAdam": torch.optim.NAdam,
    "RAdam": torch.optim.RAdam,
    "Adamax": torch.optim.Adamax,
    "Adadelta": torch.optim.Adadelta,
    "RMSprop": lambda p: torch.optim.RMSprop(p, centered=True, momentum=0.9),
    "Rprop": torch.optim.Rprop,
    "ASGD": torch.optim.ASGD,
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
}


@pytest.mark.parametrize("name", KINDS)
def test_state_is_made_as_a_whole_or_not_at_all(name):
    torch.manual_seed(0)
    start, grad = torch.randn(1024, 1024), torch.randn(1024, 1024)
    found = []
    for fails in (True, False):
        p = torch.nn.Parameter(start.clone())
        p.grad = grad.clone()
        view = p.grad[:1], p[:1]  # held, so that neither can leave memory
        optimizer = KINDS[name]([p])
        if fails:
            with (
                pytest.raises(memory.BudgetError),
                memory.budget(memory.current() + 6_000_000 * (name not in ("SGD", "ASGD"))),
            ):
                optimizer.step()
        optimizer.step()
        found.append([p.detach(), *(t for t in optimizer.state[p].values() if isinstance(t, torch.Tensor))])
        del view
    assert all(map(torch.equal, *found))
