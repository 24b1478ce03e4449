"""Sorting that can be differentiated: odd-even and bitonic networks under four distributions, and the loss of an order"""

import same
import torch
from diffsort import DiffSortNet

x = same.data(6, 8)
order = torch.nn.functional.one_hot(x.argsort(1).argsort(1), 8).float()
numbers = []
for network in ("odd_even", "bitonic"):
    for distribution in ("cauchy", "logistic", "logistic_phi", "gaussian", "reciprocal", "optimal"):
        sorter = DiffSortNet(network, 8, steepness=5, distribution=distribution)
        net = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8)))

        def loss(m, sorter=sorter):
            return torch.nn.functional.binary_cross_entropy(sorter(m(x))[1].clamp(0, 1), order)

        numbers += same.train(net, loss, steps=3)
        numbers.append(sorter(x)[0].sum().item())
same.report(numbers)
