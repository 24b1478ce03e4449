"""Optimizers of several orders, with their states packed together: steps of a small network"""

import heavyball
import same
import torch

heavyball.utils.compile_mode = None
x, y = same.data(16, 10), same.data(16, 2, seed=1)
numbers = []
for name in ("AdamW", "ADOPT", "AdEMAMix", "NAdam", "SFAdamW", "RMSprop", "LaProp", "Muon", "Scion"):
    net = same.weights(torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)))
    optimizer = getattr(heavyball, name)(net.parameters(), lr=0.01)
    for _ in range(5):
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    numbers.append(loss.item())
same.report(numbers)
