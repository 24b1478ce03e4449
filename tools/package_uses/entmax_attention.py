"""Sparse probabilities in place of softmax, and their losses."""

import same
import torch
from entmax import entmax15, entmax15_loss, entmax_bisect, sparsemax, sparsemax_loss

x = same.data(5, 7).requires_grad_()
y = same.labels(5, 7)
alpha = torch.tensor(1.3, requires_grad=True)
found = []
for f in (sparsemax, entmax15):
    out = f(x, dim=-1)
    (g,) = torch.autograd.grad((out * same.data(5, 7, seed=1)).sum(), x)
    found += [out.square().sum().item(), g.abs().sum().item()]
out = entmax_bisect(x, alpha)
gx, ga = torch.autograd.grad((out * same.data(5, 7, seed=1)).sum(), (x, alpha))
found += [out.square().sum().item(), gx.abs().sum().item(), ga.item()]
loss = entmax15_loss(x, y).mean() + sparsemax_loss(x, y).mean()
loss.backward()
same.report([*found, loss.item(), x.grad.abs().sum().item()])
