"""A controlled differential equation along two splines and along straight lines of a series, with the adjoint"""

import same
import torch
import torchcde


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(5, 15)

    def forward(self, t, z):
        return self.inner(z).tanh().view(*z.shape[:-1], 5, 3)


field, read = same.weights(Field(), 0.3), same.weights(torch.nn.Linear(5, 1), 0.3)
first = same.weights(torch.nn.Linear(3, 5), 0.3)
t = torch.linspace(0, 1, 8)
x = torch.cat([t[None, :, None].expand(4, 8, 1), same.data(4, 8, 2)], dim=2)
holes = x.clone()
holes[1, 3:5, 1] = float("nan")
numbers = []
for spline in (torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(holes)),
               torchcde.CubicSpline(torchcde.natural_cubic_coeffs(holes)),
               torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(x, rectilinear=0))):  # fmt: skip
    for adjoint in (False, True):
        z = torchcde.cdeint(
            X=spline,
            func=field,
            z0=first(spline.evaluate(spline.interval[0])),
            t=spline.interval,
            adjoint=adjoint,
            method="rk4",
            options={"step_size": 0.25},
        )
        loss = torch.nn.functional.softplus(read(z[:, -1])).mean()
        for p in (*field.parameters(), *first.parameters()):
            p.grad = None
        loss.backward()
        numbers += [loss.item(), *(p.grad.abs().sum().item() for p in (*field.parameters(), *first.parameters()))]
same.report(numbers)
