"""Channels pruned with all that depends on them, by the size of weights and by gradients, and trained on"""

import same
import torch
import torch_pruning as tp
from torchvision.models import mobilenet_v2, resnet18

pictures, classes = same.data(2, 3, 32, 32).double(), same.labels(2, 10)
numbers = []
for make, importance in (
    (resnet18, tp.importance.MagnitudeImportance(p=2)),
    (mobilenet_v2, tp.importance.LAMPImportance()),
    (resnet18, tp.importance.TaylorImportance()),
):
    net = same.weights(make(num_classes=10), 0.05).double()
    before = tp.utils.count_ops_and_params(net, pictures)

    def loss(m):
        return torch.nn.functional.cross_entropy(m(pictures), classes)

    if isinstance(importance, tp.importance.TaylorImportance):
        loss(net).backward()
    pruner = tp.pruner.MagnitudePruner(
        net,
        pictures,
        importance=importance,
        pruning_ratio=0.5,
        ignored_layers=[m for m in net.modules() if isinstance(m, torch.nn.Linear)],
    )
    pruner.step()
    after = tp.utils.count_ops_and_params(net, pictures)
    net.zero_grad()
    numbers += [*before, *after, *same.train(net.eval(), loss, steps=2, lr=0.001)]
same.report(numbers)
