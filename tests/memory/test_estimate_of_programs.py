"""Estimates of whole programs beside what their steps take: what models do that is no plain forward."""

import pytest

import rushlight as torch
from rushlight import memory, nn


def peak(net, inputs):
    """The most bytes of the third step of Adam, and what the estimate says."""
    predicted = memory.estimate(net, inputs, torch.optim.Adam).peak
    optimizer = torch.optim.Adam(net.parameters())
    held = sum(t.nbytes for t in (*net.parameters(), *net.buffers(), *inputs))
    before = memory.current()
    for _ in range(3):
        optimizer.zero_grad()
        memory.reset_peak()
        net(*inputs).sum().backward()
        optimizer.step()
    return memory.peak() - before + held, predicted


class Accumulating(nn.Module):
    """Runs backward itself, part by part of its batch."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))

    def forward(self, x):
        total = 0
        for part in x.chunk(4):
            loss = self.layers(part).square().mean() / 4
            loss.backward()
            total = total + loss.detach()
        return total + 0 * self.layers[0].bias.sum()


def normed():
    norm = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(norm(nn.Linear(512, 1024)), nn.ReLU(), norm(nn.Linear(1024, 512)))


@pytest.mark.parametrize(
    ("make", "inputs", "tolerance"),
    [
        (Accumulating, (1024, 512), 0.01),
        (normed, (256, 512), 0.01),
        (lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.PReLU(16), nn.Conv2d(16, 16, 3), nn.PReLU()), (4, 3, 128, 128), 0.08),
    ],
    ids=["backward in forward", "spectral norm", "prelu"],
)  # fmt: skip
def test_estimates_are_near_what_a_step_takes(make, inputs, tolerance):
    torch.manual_seed(0)
    taken, predicted = peak(make(), (torch.randn(inputs),))
    assert abs(predicted - taken) < tolerance * taken


def test_the_gradients_of_a_backward_inside_forward_are_shapes_and_leave_nothing_behind():
    net = Accumulating()
    found = memory.estimate(net, (torch.randn(64, 512),), torch.optim.Adam)
    assert found.gradients >= found.parameters  # those that arrive to be added among them
    assert all(p.grad is None for p in net.parameters())
