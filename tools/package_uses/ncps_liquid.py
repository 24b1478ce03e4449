"""Liquid networks wired as neurons are: closed forms and time constants, trained on series with gaps"""

import same
import torch
from ncps.torch import LTC, CfC
from ncps.wirings import AutoNCP, FullyConnected

x, y = same.data(3, 10, 2), same.data(3, 10, 1, seed=1)
gaps = same.data(3, 10, 1, seed=2).abs().expand(3, 10, 8)
numbers = []
for make, more in (
    (lambda: LTC(2, AutoNCP(12, 1, seed=3), batch_first=True), {}),
    (lambda: LTC(2, FullyConnected(6, 1), batch_first=True, mixed_memory=True), {}),
    (lambda: CfC(2, AutoNCP(12, 1, seed=3), batch_first=True), {}),
    (lambda: CfC(2, 8, proj_size=1, mode="pure", batch_first=True), {}),
    (lambda: CfC(2, 8, proj_size=1, mode="no_gate", mixed_memory=True), {"timespans": gaps}),
):
    model = make()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.requires_grad and ("weight" in name or "ff" in name or "time" in name):
                p.copy_(
                    same.weights(torch.nn.ParameterDict({name.replace(".", "_"): torch.nn.Parameter(p.clone())}), 0.3)[
                        name.replace(".", "_")
                    ]
                )
            else:
                p.copy_(torch.where(p.abs() > 0, p.sign() * 0.5, p))
    numbers += same.train(model, lambda m, more=more: (m(x, **more)[0] - y).square().mean(), 4, 0.02)
    numbers += [p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None]
same.report(numbers)
