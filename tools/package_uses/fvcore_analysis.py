"""Parameters and activations counted, a focal loss, a precise batch norm, and a registry"""

import same
import torch
from fvcore.nn import giou_loss, parameter_count, parameter_count_table, sigmoid_focal_loss, smooth_l1_loss
from fvcore.nn.precise_bn import update_bn_stats

net = same.weights(torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                                       torch.nn.Linear(8 * 36, 4)))  # fmt: skip
counts = parameter_count(net)
x, y = same.data(6, 3, 8, 8), (same.data(6, 4, seed=1) > 0).float()
found = same.train(net, lambda m: sigmoid_focal_loss(m(x), y, alpha=0.25, gamma=2, reduction="mean"), 4)
update_bn_stats(net, [same.data(6, 3, 8, 8, seed=s) for s in range(3)], 3)
a, b = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 4]], requires_grad=True), torch.tensor([[1.0, 1, 3, 3], [1, 0, 4, 4]])
loss = giou_loss(a, b, reduction="sum") + smooth_l1_loss(a, b, beta=0.5, reduction="sum")
loss.backward()
same.report([*found, counts[""], len(parameter_count_table(net)), net[1].running_mean.sum().item(), net[1].running_var.sum().item(),
             loss.item(), *a.grad.flatten().tolist()])  # fmt: skip
