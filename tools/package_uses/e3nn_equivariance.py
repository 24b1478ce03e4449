"""Spherical harmonics, tensor products, norms and batch norms of a network that turns with its input"""

import same
import torch
from e3nn import nn, o3

irreps = o3.Irreps("4x0e + 2x1o")
sh = o3.Irreps.spherical_harmonics(2)
points = same.data(10, 3).requires_grad_()
y = o3.spherical_harmonics(sh, points, normalize=True, normalization="component")
product = same.weights(o3.FullyConnectedTensorProduct(irreps, sh, "3x0e + 2x1o"), 1.0)
x = same.data(10, irreps.dim, seed=1)
out = product(x, y)
linear = same.weights(o3.Linear("3x0e + 2x1o", irreps), 1.0)
out = linear(out)
g = nn.BatchNorm(irreps)(o3.ElementwiseTensorProduct(irreps, irreps)(x, x)[:, : irreps.dim]) + o3.Norm(irreps)(x).sum()
loss = out.square().sum() + g.square().sum()
loss.backward()
turn = o3.matrix_x(torch.tensor(0.7)) @ o3.matrix_y(torch.tensor(0.3))
turned = linear(
    product(
        x @ irreps.D_from_matrix(turn).T, o3.spherical_harmonics(sh, points @ turn.T, True, normalization="component")
    )
)
apart = (turned - out @ irreps.D_from_matrix(turn).T).abs().max()
same.report(
    [
        loss.item(),
        points.grad.abs().sum().item(),
        *(p.grad.abs().sum().item() for p in product.parameters()),
        float(apart < 1e-4),
    ]
)
