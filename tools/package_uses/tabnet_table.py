"""TabNet on a table: attention over columns, its masks, and a step of training"""

import same
import torch
from pytorch_tabnet.tab_network import TabNet, TabNetPretraining

groups = torch.eye(6)
net = same.weights(TabNet(6, 3, n_d=4, n_a=4, n_steps=2, virtual_batch_size=8, group_attention_matrix=groups), 0.3)
x, y = same.data(16, 6), same.labels(16, 3)
found = same.train(net, lambda m: torch.nn.functional.cross_entropy(m(x)[0], y) + 0.01 * m(x)[1], 4)
net.eval()
explained, masks = net.forward_masks(x)
found += [explained.sum().item(), *(m.square().sum().item() for m in masks.values())]
pre = same.weights(
    TabNetPretraining(
        6, pretraining_ratio=0.0, n_d=4, n_a=4, n_steps=2, virtual_batch_size=8, group_attention_matrix=groups
    ),
    0.3,
)
pre.train()
rebuilt, original, mask = pre(x)
(rebuilt - original).square().mean().backward()
same.report(
    [
        *found,
        rebuilt.sum().item(),
        mask.sum().item(),
        sum(p.grad.abs().sum().item() for p in pre.parameters() if p.grad is not None),
    ]
)
