"""Ordinal regression by CORAL and CORN losses, and schedules with warm-up"""

import pytorch_warmup
import same
import torch
from coral_pytorch.dataset import corn_label_from_logits, levels_from_labelbatch, proba_to_label
from coral_pytorch.layers import CoralLayer
from coral_pytorch.losses import coral_loss, corn_loss

x, y = same.data(20, 5), same.labels(20, 4)
levels = levels_from_labelbatch(y, num_classes=4)
net = same.weights(torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), CoralLayer(8, 4)), 0.3)
optimizer = torch.optim.AdamW(net.parameters(), 0.02)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
warmup = pytorch_warmup.UntunedLinearWarmup(optimizer)
found = []
for _ in range(5):
    optimizer.zero_grad()
    loss = coral_loss(net(x), levels)
    loss.backward()
    optimizer.step()
    with warmup.dampening():
        schedule.step()
    found += [loss.item(), optimizer.param_groups[0]["lr"]]
found.append(proba_to_label(torch.sigmoid(net(x))).sum().item())
corn = same.weights(torch.nn.Linear(5, 3), 0.5)
found += same.train(corn, lambda m: corn_loss(m(x), y, num_classes=4), 4)
same.report([*found, corn_label_from_logits(corn(x)).float().sum().item()])
