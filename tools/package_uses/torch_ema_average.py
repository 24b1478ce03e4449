"""Averages of weights while a network is trained."""

import same
import torch
from torch_ema import ExponentialMovingAverage

net = same.weights(torch.nn.Linear(4, 2))
average = ExponentialMovingAverage(net.parameters(), decay=0.9)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
x = same.data(8, 4)
found = []
for _ in range(5):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
    found.append(loss.item())
with average.average_parameters():
    found.append(net(x).square().mean().item())
same.report([*found, net(x).square().mean().item(), len(average.state_dict())])
