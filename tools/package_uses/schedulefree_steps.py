"""Optimizers without schedules, and Lion."""

import same
import schedulefree
import torch
from lion_pytorch import Lion

x, y = same.data(16, 4), same.data(16, 1, seed=1)
found = []
for make in (
    lambda p: schedulefree.AdamWScheduleFree(p, lr=0.05, warmup_steps=2),
    lambda p: schedulefree.SGDScheduleFree(p, lr=0.1),
    lambda p: schedulefree.RAdamScheduleFree(p, lr=0.05),
    lambda p: Lion(p, lr=0.01, weight_decay=0.1),
):
    net = same.weights(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    optimizer = make(net.parameters())
    getattr(optimizer, "train", lambda: None)()
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    getattr(optimizer, "eval", lambda: None)()
    found.append(torch.nn.functional.mse_loss(net(x), y).item())
same.report(found)
