"""Losses and heads of self-supervised learning: SimCLR, MoCo, Barlow Twins, SwAV, DINO, VICReg, and masked pictures"""

import copy

import same
import torch
from lightly.loss import BarlowTwinsLoss, DINOLoss, NegativeCosineSimilarity, NTXentLoss, SwaVLoss, VICRegLoss
from lightly.models.modules import (
    BarlowTwinsProjectionHead,
    DINOProjectionHead,
    SimCLRProjectionHead,
    SimSiamPredictionHead,
    SwaVPrototypes,
)
from lightly.models.utils import deactivate_requires_grad, update_momentum
from lightly.utils.scheduler import CosineWarmupScheduler, cosine_schedule

numbers = []
x, y = same.data(8, 12), same.data(8, 12, seed=1)
for head, loss in (
    (SimCLRProjectionHead(12, 8, 4), NTXentLoss(temperature=0.2)),
    (BarlowTwinsProjectionHead(12, 8, 4), BarlowTwinsLoss()),
    (SimCLRProjectionHead(12, 8, 4), VICRegLoss()),
):
    same.weights(head, 0.4)
    numbers += same.train(head, lambda m, loss=loss: loss(m(x), m(y)), 3, 0.001)
head, predictor, criterion = (
    same.weights(SimCLRProjectionHead(12, 8, 4), 0.4),
    same.weights(SimSiamPredictionHead(4, 4, 4), 0.4),
    NegativeCosineSimilarity(),
)
slow = copy.deepcopy(head)
deactivate_requires_grad(slow)
both = torch.nn.ModuleList([head, predictor])
for step in range(3):
    numbers += same.train(both, lambda m: criterion(m[1](m[0](x)), slow(y).detach()), 1)
    update_momentum(head, slow, m=cosine_schedule(step, 3, 0.9, 1))
prototypes, swav = same.weights(SwaVPrototypes(4, 5)), SwaVLoss()
numbers += same.train(prototypes, lambda m: swav([m(x[:, :4])], [m(y[:, :4])]), 3)
dino, loss = (
    same.weights(DINOProjectionHead(12, 8, 4, 6, batch_norm=False), 0.4),
    DINOLoss(output_dim=6, warmup_teacher_temp_epochs=2),
)
numbers += same.train(dino, lambda m: loss([m(y).detach()], [m(x), m(y)], epoch=1), 3)
optimizer = torch.optim.SGD(head.parameters(), lr=1.0)
scheduler = CosineWarmupScheduler(optimizer, warmup_epochs=2, max_epochs=6)
for _ in range(4):
    optimizer.step()
    scheduler.step()
    numbers.append(scheduler.get_last_lr()[0])
same.report(numbers)
