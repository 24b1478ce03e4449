"""Minimizers of functions with gradients and Hessians by autograd: BFGS, conjugate gradients, Newton and trust regions"""

import same
import torch
import torchmin

x0 = torch.tensor([-1.2, 1.0, 0.8], dtype=torch.float64)


def rosen(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


numbers = []
for method in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg", "trust-exact", "dogleg"):
    start = torch.tensor([0.9, 1.1, 1.0], dtype=torch.float64) if method == "dogleg" else x0
    found = torchmin.minimize(rosen, start, method=method, max_iter=15 if method == "cg" else 60)
    numbers += [*found.x.tolist(), float(found.nit), found.fun.item()]
found = torchmin.minimize_constr(rosen, x0, bounds=([-0.5] * 3, [0.8] * 3), max_iter=60)
numbers += [round(v, 6) for v in found.x.tolist()]
fit = torchmin.least_squares(
    lambda p: (
        p[0] * torch.exp(p[1] * torch.linspace(0, 1, 9, dtype=torch.float64))
        - torch.linspace(1, 3, 9, dtype=torch.float64)
    ),
    torch.tensor([1.0, 0.5], dtype=torch.float64),
)
numbers += fit.x.tolist()
weights = torch.nn.Parameter(same.data(3).double())
optimizer = torchmin.Minimizer([weights], method="bfgs", max_iter=5)


def closure():
    optimizer.zero_grad()
    return rosen(weights)


numbers.append(optimizer.step(closure).item())
same.report(numbers)
