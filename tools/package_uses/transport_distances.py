"""Distances of optimal transport between clouds, histograms and spaces, with gradients, and Sinkhorn's divergence of points"""

import geomloss
import ot
import same
import torch

x, y = same.data(12, 3).double().requires_grad_(), same.data(10, 3, seed=1).double() + 0.5
a, b = torch.full((12,), 1 / 12).double().requires_grad_(), torch.full((10,), 1 / 10).double().requires_grad_()
numbers = []


def told(loss: torch.Tensor) -> None:
    numbers.append(loss.item())
    for leaf in (x, a, b):
        leaf.grad = None
    loss.backward()
    numbers.extend(leaf.grad.abs().sum().item() for leaf in (x, a, b) if leaf.grad is not None)


costs = ot.dist(x, y)
told(ot.emd2(a, b, costs))
told(ot.sinkhorn2(a, b, ot.dist(x, y), 0.5))
told((ot.sinkhorn(a, b, ot.dist(x, y), 0.5, method="sinkhorn_log") * costs.detach()).sum())
told((ot.emd(a, b, ot.dist(x, y)) * ot.dist(x, y)).sum())
told(ot.gromov.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), a, b))
told(ot.gromov.fused_gromov_wasserstein2(ot.dist(x, y), ot.dist(x, x), ot.dist(y, y), a, b))
told(ot.unbalanced.sinkhorn_unbalanced2(a, b, ot.dist(x, y), 0.5, 1.0))
told(ot.sliced_wasserstein_distance(x, y, projections=torch.nn.functional.normalize(same.data(3, 20).double(), dim=0)))
told(ot.wasserstein_1d(x, y[:8].repeat(2, 1)[:12]).sum())
told(ot.bregman.empirical_sinkhorn_divergence(x, y, 0.5))
told(ot.gaussian.empirical_bures_wasserstein_distance(x, y, reg=1e-3))
told(ot.solve(ot.dist(x, y), a, b, reg=0.5).value)
told(ot.solve_sample(x, y, a, b).value)
numbers.append(
    ot.bregman.barycenter(torch.stack([b, b.flip(0) * 0.5 + 0.05], 1).detach(), ot.dist(y, y), 1.0).sum().item()
)
for loss in ("sinkhorn", "gaussian", "laplacian", "energy"):
    told(geomloss.SamplesLoss(loss, p=2, blur=0.3, backend="tensorized")(a, x, b, y))
same.report(numbers)
