"""Gradients through unrolled steps of training."""

import higher
import same
import torch

model = same.weights(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)), 0.4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
rate = torch.tensor(0.1, requires_grad=True)
x, y = same.data(16, 4), same.data(16, 1, seed=1)
with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False, override={"lr": [rate]}) as (inner, steps):
    for _ in range(3):
        steps.step(torch.nn.functional.mse_loss(inner(x), y))
    loss = torch.nn.functional.mse_loss(inner(x), y)
loss.backward()
same.report([loss.item(), rate.grad.item(), *(p.grad.abs().sum().item() for p in model.parameters())])
