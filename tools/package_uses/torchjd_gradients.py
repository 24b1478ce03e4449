"""Gradients of several losses made one: Jacobians, and nine ways to combine their rows"""

import same
import torch
from torchjd import aggregation, autojac

x, y = same.data(16, 10), same.data(16, 2, seed=1)
numbers = []
for make in (
    aggregation.Mean(),
    aggregation.Sum(),
    aggregation.UPGrad(),
    aggregation.MGDA(),
    aggregation.AlignedMTL(),
    aggregation.DualProj(),
    aggregation.IMTLG(),
    aggregation.TrimmedMean(trim_number=0),
    aggregation.ConFIG(),
):
    net = same.weights(torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        losses = (net(x) - y).square().mean(0)
        autojac.backward(losses)
        autojac.jac_to_grad(net.parameters(), make)
        optimizer.step()
        optimizer.zero_grad()
    numbers += losses.tolist()
same.report(numbers)
