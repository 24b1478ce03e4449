"""Neural differential equations of a given depth, by interchangeable solvers, and a continuous flow"""

import same
import torch
from torchdyn.core import NeuralODE
from torchdyn.numerics import odeint

numbers = []
x = same.data(5, 2)
for sensitivity in ("autograd", "adjoint", "interpolated_adjoint"):
    field = same.weights(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)), 0.4)
    model = NeuralODE(field, sensitivity=sensitivity, solver="dopri5", atol=1e-6, rtol=1e-6, return_t_eval=False)
    loss = model(x, torch.linspace(0, 1, 3))[-1].square().mean()
    loss.backward()
    numbers += [loss.item(), *(p.grad.abs().sum().item() for p in field.parameters())]
for solver in ("euler", "rk4", "midpoint", "tsit5"):
    t, y = odeint(lambda t, y: -y * torch.cos(t), x, torch.linspace(0, 1, 11), solver=solver)
    numbers.append(y[-1].sum().item())
same.report(numbers)
