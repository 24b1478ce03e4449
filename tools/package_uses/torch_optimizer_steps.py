"""Twenty optimizers, some steps each of the same small model"""

import same
import torch
import torch_optimizer

x, y = same.data(24, 5), same.data(24, 1, seed=1)
found = []
for name in ("AccSGD", "AdaBound", "AdaMod", "AdamP", "AggMo", "DiffGrad", "Lamb", "MADGRAD", "NovoGrad", "PID", "QHAdam", "QHM", "RAdam",
             "Shampoo", "Ranger", "RangerQH", "SGDP", "SGDW", "SWATS", "Apollo", "Yogi"):  # fmt: skip
    model = same.weights(torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)), 0.3)
    optimizer = getattr(torch_optimizer, name)(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    found.append(loss.item())
lookahead = torch_optimizer.Lookahead(torch_optimizer.Yogi(model.parameters(), lr=0.01), k=2)
for _ in range(4):
    lookahead.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    lookahead.step()
same.report([*found, loss.item(), *(p.sum().item() for p in model.parameters())])
