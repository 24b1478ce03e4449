"""Integrals by Simpson's and Boole's rules, Gauss-Legendre's and Monte Carlo's, and their derivatives"""

import same
import torch
from torchquad import Boole, GaussLegendre, MonteCarlo, Simpson, Trapezoid, set_up_backend

set_up_backend("torch", data_type="float64")
numbers = []
domain = torch.tensor([[0.0, 1.0], [-1.0, 2.0]], dtype=torch.float64, requires_grad=True)
for rule in (Trapezoid(), Simpson(), Boole(), GaussLegendre()):
    value = rule.integrate(
        lambda x: torch.sin(x[:, 0]) + torch.exp(x[:, 1]), dim=2, N=625, integration_domain=domain, backend="torch"
    )
    (gradient,) = torch.autograd.grad(value, domain)
    numbers += [value.item(), *gradient.flatten().tolist()]
numbers.append(
    round(
        MonteCarlo()
        .integrate(
            lambda x: x[:, 0] * x[:, 1], dim=2, N=20000, integration_domain=[[0, 1], [0, 1]], backend="torch", seed=3
        )
        .item(),
        9,
    )
)
same.report(numbers)
