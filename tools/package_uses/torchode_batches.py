"""Batches of differential equations, each with its own steps: by autograd and by two adjoints, with gradients"""

import same
import torch
import torchode

field = same.weights(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)), 0.5).double()
numbers = []


def flow(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return field(y) - 0.1 * t.unsqueeze(-1) * y


for method in (torchode.Dopri5, torchode.Tsit5, torchode.Heun):
    term = torchode.ODETerm(flow)
    step, controller = method(term=term), torchode.IntegralController(atol=1e-7, rtol=1e-6, term=term)
    start = same.data(5, 3).double().requires_grad_()
    problem = torchode.InitialValueProblem(start, t_eval=torch.linspace(0, 1, 6).double().expand(5, 6))
    found = torchode.AutoDiffAdjoint(step, controller).solve(problem)
    field.zero_grad()
    found.ys[:, -1].square().sum().backward()
    numbers += [*found.stats["n_steps"].tolist(), found.ys.sum().item(), *start.grad.sum(0).tolist()]
    numbers += [p.grad.sum().item() for p in field.parameters()]


class Field(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = field

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y) - 0.1 * t.unsqueeze(-1) * y


for adjoint in (torchode.BacksolveAdjoint, torchode.JointBacksolveAdjoint):
    term = torchode.ODETerm(Field())
    step, controller = torchode.Dopri5(term=term), torchode.IntegralController(atol=1e-7, rtol=1e-6, term=term)
    start = same.data(5, 3).double().requires_grad_()
    problem = torchode.InitialValueProblem(start, t_eval=torch.linspace(0, 1, 6).double().expand(5, 6))
    field.zero_grad()
    adjoint(term, step, controller).solve(problem).ys[:, -1].square().sum().backward()
    numbers += [*start.grad.sum(0).tolist(), *(p.grad.sum().item() for p in field.parameters())]
same.report(numbers)
