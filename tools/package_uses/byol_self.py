"""BYOL around a small network: two views of a picture, a slow copy of the network"""

import same
import torch
from byol_pytorch import BYOL

net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, stride=2),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(8, 12),
)
learner = BYOL(
    net,
    image_size=16,
    hidden_layer=-1,
    projection_size=8,
    projection_hidden_size=16,
    augment_fn=torch.nn.Identity(),
    augment_fn2=torch.nn.Hardtanh(),
)
x = same.data(4, 3, 16, 16).double()
learner.double()
same.weights(learner, 0.3)
optimizer = torch.optim.SGD(learner.parameters(), lr=1e-2)
numbers = []
for _ in range(4):
    loss = learner(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    learner.update_moving_average()
    numbers.append(loss.item())
same.report(numbers + [p.grad.abs().sum().item() for p in learner.parameters() if p.grad is not None])
