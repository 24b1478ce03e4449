"""Losses and miners of metric learning, and accuracy by nearest neighbours."""

import same
import torch
from pytorch_metric_learning import distances, losses, miners, reducers

x, y = same.data(24, 6), same.labels(24, 4)
net = same.weights(torch.nn.Linear(6, 5), 0.5)
miner = miners.MultiSimilarityMiner()
found = []
for loss in (
    losses.TripletMarginLoss(),
    losses.ContrastiveLoss(),
    losses.NTXentLoss(0.3),
    losses.SupConLoss(),
    losses.CircleLoss(),
    losses.MultiSimilarityLoss(),
    losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0)),
):
    net.zero_grad()
    z = net(x)
    value = loss(z, y, miner(z, y))
    value.backward()
    found += [value.item(), net.weight.grad.abs().sum().item()]
arc = same.weights(losses.ArcFaceLoss(4, 5))
value = arc(net(x), y)
value.backward()
same.report([*found, value.item(), arc.W.grad.abs().sum().item()])
