"""Steps on the Poincare ball, the Stiefel manifold and the sphere, and distances of positive definite matrices"""

import geoopt
import same
import torch

found = []


def steps(point, optimizer, loss_of, count=4):
    for _ in range(count):
        optimizer.zero_grad()
        loss = loss_of(point)
        loss.backward()
        optimizer.step()
        found.append(loss.item())


ball, stiefel, sphere = geoopt.PoincareBall(c=1.0), geoopt.Stiefel(), geoopt.Sphere()
target = ball.expmap0(same.data(5, 3, seed=1) * 0.1)
p = geoopt.ManifoldParameter(ball.expmap0(same.data(5, 3) * 0.2), manifold=ball)
steps(p, geoopt.optim.RiemannianAdam([p], lr=0.05), lambda p: ball.dist(p, target).sum())
w = geoopt.ManifoldParameter(stiefel.projx(same.data(5, 3)), manifold=stiefel)
steps(w, geoopt.optim.RiemannianSGD([w], lr=0.05, momentum=0.9), lambda w: (w @ w.T @ same.data(5, 5)).sum())
s = geoopt.ManifoldParameter(sphere.projx(same.data(6, 3)), manifold=sphere)
steps(s, geoopt.optim.RiemannianAdam([s], lr=0.1, amsgrad=True), lambda s: (s @ same.data(3)).square().sum())
a = (torch.eye(3) + 0.1 * same.data(3, 3) @ same.data(3, 3).T).requires_grad_()
distance = geoopt.SymmetricPositiveDefinite().dist(a, torch.eye(3) * 2)
distance.backward()
same.report([*found, distance.item(), a.grad.abs().sum().item()])
