"""Roots, equilibria, minima, linear systems, eigenvalues, integrals and interpolations with gradients through all of them"""

import same
import torch
import xitorch
from xitorch.integrate import quad, solve_ivp
from xitorch.interpolate import Interp1D
from xitorch.linalg import solve, symeig
from xitorch.optimize import equilibrium, minimize, rootfinder

a = (same.data(4, 4).double() * 0.3).requires_grad_()
b = same.data(4, 1, seed=1).double().requires_grad_()
numbers = []


def noted(value):
    grads = torch.autograd.grad(value.sum(), (a, b), allow_unused=True)
    numbers.extend([value.sum().item(), *(g.abs().sum().item() for g in grads if g is not None)])


y0 = torch.zeros(4, 1, dtype=torch.float64)
noted(rootfinder(lambda y, a, b: torch.tanh(a @ y + b) + y / 2, y0, params=(a, b), method="broyden1", f_tol=1e-11))
noted(equilibrium(lambda y, a, b: torch.tanh(a @ y + b), y0, params=(a, b), f_tol=1e-11))
noted(minimize(lambda y, a, b: ((y - a @ b) ** 2).sum() + (y**4).sum(), y0 + 0.1, params=(a, b), f_tol=1e-11))
operator = xitorch.LinearOperator.m(a @ a.T + torch.eye(4, dtype=torch.float64))
noted(solve(operator, b))
operator = xitorch.LinearOperator.m(a @ a.T + torch.eye(4, dtype=torch.float64))
noted(symeig(operator, neig=2, mode="lowest")[0] + 0 * b.sum())
noted(
    quad(
        lambda x, a: torch.exp(-a.abs() * x),
        torch.tensor(0.0, dtype=torch.float64),
        torch.tensor(1.0, dtype=torch.float64),
        params=(a,),
    )
)
ts = torch.linspace(0, 1, 6, dtype=torch.float64)
noted(solve_ivp(lambda t, y, a: -a @ y, ts, b, params=(a,), method="rk45", rtol=1e-8, atol=1e-10))
noted(Interp1D(ts, b[0] * ts**2, method="cspline")(torch.tensor([0.31, 0.77], dtype=torch.float64)))
same.report(numbers)
