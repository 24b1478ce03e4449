"""A stochastic differential equation along a path that is given."""

import same
import torch
import torchsde


class Field(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.mu, self.sigma = same.weights(torch.nn.Linear(3, 3)), same.weights(torch.nn.Linear(3, 3))

    def f(self, t, y):
        return self.mu(y)

    def g(self, t, y):
        return 0.1 * torch.sigmoid(self.sigma(y))


class Path:
    shape, dtype, device, levy_area_approximation = (4, 3), torch.float32, torch.device("cpu"), "none"

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return same.data(4, 3, seed=int(float(ta) * 1000)) * (tb - ta) ** 0.5


field = Field()
out = torchsde.sdeint(field, same.data(4, 3, seed=1), torch.linspace(0, 1, 5), bm=Path(), method="euler", dt=0.05)
loss = out[-1].square().mean()
loss.backward()
same.report([loss.item(), *(p.grad.abs().sum().item() for p in field.parameters())])
