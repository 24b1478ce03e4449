"""Scattering of waves and pictures, with gradients to what went in, before a linear layer that is trained"""

import same
import scipy.special
import torch

if not hasattr(scipy.special, "sph_harm"):  # it left SciPy after kymatio came out
    scipy.special.sph_harm = lambda m, n, theta, phi: scipy.special.sph_harm_y(n, m, phi, theta)
from kymatio.torch import Scattering1D, Scattering2D

wave = same.data(3, 256).requires_grad_()
picture = same.data(3, 1, 32, 32).requires_grad_()
numbers = []
for scatter, x in (
    (Scattering1D(J=4, shape=256, Q=2), wave),
    (Scattering1D(J=3, shape=256, Q=1, max_order=1), wave),
    (Scattering2D(J=2, shape=(32, 32), L=3), picture),
):
    x.grad = None
    found = scatter(x)
    found.square().sum().backward()
    numbers += [
        *found.shape,
        found.sum().item(),
        found.abs().sum().item(),
        x.grad.sum().item(),
        x.grad.abs().sum().item(),
    ]
    features = found.detach().flatten(1)
    head = same.weights(torch.nn.Linear(features.shape[1], 2))
    numbers += same.train(
        head, lambda m, f=features: torch.nn.functional.cross_entropy(m(f), torch.tensor([0, 1, 0])), 5
    )
same.report(numbers)
