"""More than a gradient from one backward: samples' gradients, variances, diagonals and factors of curvature"""

import same
import torch
from backpack import backpack, extend, extensions

net = same.weights(
    torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.Sigmoid(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(3, 2, 2), torch.nn.Tanh(),
        torch.nn.Flatten(), torch.nn.Linear(8, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)), 0.4)  # fmt: skip
extend(net)
criterion = extend(torch.nn.CrossEntropyLoss())
x, y = same.data(7, 1, 6, 6), same.labels(7, 3)
numbers = []
for found in (
    (extensions.BatchGrad(), extensions.BatchL2Grad(), extensions.SumGradSquared(), extensions.Variance()),
    (extensions.DiagGGNExact(), extensions.BatchDiagGGNExact()),
    (extensions.KFLR(), extensions.SqrtGGNExact()),
    (extensions.DiagHessian(), extensions.BatchDiagHessian()),
    (extensions.HMP(), extensions.GGNMP()),
):
    net.zero_grad()
    with backpack(*found):
        loss = criterion(net(x), y)
        loss.backward()
    numbers.append(loss.item())
    for p in net.parameters():
        for extension in found:
            value = getattr(p, extension.savefield)
            if callable(value):
                value = value(torch.ones(1, *p.shape))
            parts = value if isinstance(value, (list, tuple)) else [value]
            numbers += [part.abs().sum().item() for part in parts]
series = extend(same.weights(torch.nn.LSTM(4, 3, batch_first=True), 0.4))
with backpack(extensions.BatchGrad()):
    series(same.data(5, 6, 4))[0].square().sum().backward()
numbers += [p.grad_batch.abs().sum().item() for p in series.parameters()]
same.report(numbers)
