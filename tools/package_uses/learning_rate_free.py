"""Optimizers that find their own learning rates (Prodigy, D-Adaptation), MADGRAD, CAME and Adam-atan2"""

import came_pytorch
import dadaptation
import madgrad
import prodigyopt
import same
import torch
from adam_atan2_pytorch import AdamAtan2

x, y = same.data(32, 12), same.data(32, 3, seed=1)
numbers = []
for make in (
    lambda p: prodigyopt.Prodigy(p, weight_decay=0.01, safeguard_warmup=True),
    lambda p: prodigyopt.Prodigy(p, slice_p=3, use_bias_correction=True),
    lambda p: dadaptation.DAdaptAdam(p, lr=1.0),
    lambda p: dadaptation.DAdaptSGD(p, lr=1.0, momentum=0.9),
    lambda p: dadaptation.DAdaptAdaGrad(p, lr=1.0),
    lambda p: dadaptation.DAdaptLion(p, lr=1.0),
    lambda p: madgrad.MADGRAD(p, lr=0.01),
    lambda p: madgrad.MirrorMADGRAD(p, lr=0.01),
    lambda p: came_pytorch.CAME(p, lr=0.01, betas=(0.9, 0.999, 0.9999)),
    lambda p: AdamAtan2(p, lr=0.01),
):
    net = same.weights(torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)))
    optimizer = make(net.parameters())
    for _ in range(8):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    numbers += [loss.item(), net[0].weight.abs().sum().item()]
same.report(numbers)
