"""A neural differential equation, with the adjoint."""

import same
import torch
from torchdiffeq import odeint, odeint_adjoint

net = same.weights(torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)), 0.3).double()


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net

    def forward(self, t, y):
        return self.net(y)


start, times = same.data(4, 2).double(), torch.linspace(0, 1, 5, dtype=torch.float64)
found = []
for solve in (odeint, odeint_adjoint):
    net.zero_grad()
    loss = solve(Field(), start, times, method="dopri5", rtol=1e-8, atol=1e-8)[-1].square().mean()
    loss.backward()
    found += [loss.item(), *(p.grad.abs().sum().item() for p in net.parameters())]
same.report(found)
