"""Adversarial pictures by gradients: twelve attacks on a small network"""

import same
import torch
import torchattacks

net = same.weights(
    torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(512, 4)
    )
).eval()
x, y = same.data(4, 3, 8, 8).sigmoid(), same.labels(4, 4)
numbers = []
for attack in (
    torchattacks.FGSM(net),
    torchattacks.BIM(net),
    torchattacks.PGD(net, random_start=False),
    torchattacks.CW(net, steps=20),
    torchattacks.MIFGSM(net),
    torchattacks.PGDL2(net, random_start=False),
    torchattacks.DeepFool(net, steps=5),
    torchattacks.TIFGSM(net, diversity_prob=0.0),
    torchattacks.NIFGSM(net),
    torchattacks.SINIFGSM(net),
    torchattacks.FFGSM(net, alpha=0.0),
    torchattacks.EADL1(net, max_iterations=10),
):
    found = attack(x, y)
    numbers += [found.sum().item(), net(found).sum().item()]
same.report(numbers)
