"""Widths that share learning rates (the maximal update parametrization): shapes of a base, its optimizers, and their steps"""

import mup
import same
import torch


class Net(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.into = torch.nn.Linear(6, width)
        self.middle = torch.nn.Linear(width, width, bias=False)
        self.out = mup.MuReadout(width, 3, readout_zero_init=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.middle(torch.relu(self.into(x)))))


x, y = same.data(16, 6), same.labels(16, 3)
numbers = []
for make in (mup.MuSGD, mup.MuAdam, mup.MuAdamW):
    for width in (8, 32):
        net = Net(width)
        mup.set_base_shapes(net, Net(8), delta=Net(16))
        same.weights(net, 0.3)
        numbers += [p.infshape.width_mult() for p in net.parameters()]
        optimizer = make(net.parameters(), lr=0.02, weight_decay=0.01)
        for _ in range(4):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            numbers.append(loss.item())
        numbers += [group["lr"] for group in optimizer.param_groups]
mup.init.normal_(net.middle.weight, std=0.0)
mup.init.uniform_(net.middle.weight, -0.0, 0.0)
numbers += [net.middle.weight.abs().sum().item()]
same.report(numbers)
