"""Functional optimizers, a differentiable inner loop, and implicit gradients"""

import same
import torch
import torchopt

x, y = same.data(8, 3), same.data(8, 1, seed=1)
numbers = []
net = same.weights(torch.nn.Linear(3, 1))
for make in (
    torchopt.adam(0.1),
    torchopt.sgd(0.1, momentum=0.9),
    torchopt.rmsprop(0.05),
    torchopt.adamw(0.1),
    torchopt.adagrad(0.1),
    torchopt.chain(torchopt.clip.clip_grad_norm(0.5), torchopt.adam(0.1)),
):
    params = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
    state = make.init(params)
    for _ in range(3):
        loss = (torch.nn.functional.linear(x, *params) - y).square().mean()
        grads = torch.autograd.grad(loss, params)
        updates, state = make.update(grads, state, params=params, inplace=False)
        params = torchopt.apply_updates(params, updates, inplace=False)
    numbers.append(loss.item())
scale = torch.tensor(0.5, requires_grad=True)
inner = torchopt.MetaAdam(net, lr=0.1)
for _ in range(3):
    inner.step((net(x) * scale - y).square().mean())
outer = (net(x) - y).square().mean()
outer.backward()
numbers += [outer.item(), scale.grad.item()]


def residual(p, w):
    return x.T @ (x @ p - y) / 8 + w * p


@torchopt.diff.implicit.custom_root(residual, argnums=1, solve=torchopt.linear_solve.solve_normal_cg(maxiter=20))
def ridge(p, w):
    return torch.linalg.solve(x.T @ x / 8 + w * torch.eye(3), x.T @ y / 8)


w = torch.tensor(0.3, requires_grad=True)
ridge(torch.zeros(3, 1), w).sum().backward()
numbers.append(w.grad.item())
same.report(numbers)
